//! A table of a page: a row for each figure, a column for each contestant, and how many times better ours is.

use waterwheel_suite::{Results, Table};

use crate::cell;

/// What stands in each cell is found by these names in the results.
pub(crate) struct Grid<'a> {
    /// Above the labels.
    pub(crate) corner: &'a str,
    /// The head of the column, and the contestant.
    pub(crate) columns: &'a [(&'a str, &'a str)],
    pub(crate) ratios: &'a [Ratio<'a>],
    pub(crate) rows: &'a [Row<'a>],
}

/// How many times better one contestant is than another.
pub(crate) struct Ratio<'a> {
    pub(crate) head: &'a str,
    pub(crate) this: &'a str,
    pub(crate) than: &'a str,
}

pub(crate) struct Row<'a> {
    pub(crate) label: &'a str,
    /// The title of the workload, and one of its metrics.
    pub(crate) workload: &'a str,
    pub(crate) metric: &'a str,
}

impl Grid<'_> {
    /// As Markdown. An error if the results have no such workload or metric, or if a sample failed. A contestant that a workload
    /// does not have is a dash. One whose timers fired early or never has no figure.
    pub(crate) fn text(&self, results: &Results) -> Result<String, String> {
        let heads = self.columns.iter().map(|(head, _)| *head);
        let heads: Vec<_> = heads
            .chain(self.ratios.iter().map(|ratio| ratio.head))
            .collect();
        let mut text = format!("| {} | {} |\n", self.corner, heads.join(" | "));
        text += &format!("|---|{}\n", "--:|".repeat(heads.len()));
        for row in self.rows {
            let table = table(results, row.workload)?;
            let metric = metric(table, row.metric)?;
            if let Some(failure) = table.failures.first() {
                return Err(format!(
                    "{}, {}: a sample failed",
                    row.workload, failure.name
                ));
            }
            text += &format!("| {} |", row.label);
            let unit = &table.metrics[metric].unit;
            for (_, contestant) in self.columns {
                let shown = match table.series(contestant) {
                    Some(series) if series.faults() > 0 => cell::VOID.to_owned(),
                    Some(series) => cell::value(series.spread(metric).median, unit),
                    None => cell::NONE.to_owned(),
                };
                text += &format!(" {shown} |");
            }
            for Ratio { this, than, .. } in self.ratios {
                let pair = table.series(this).zip(table.series(than));
                let times = pair.map(|(this, than)| table.times_better(this, than, metric));
                let is_void = pair.is_some_and(|(this, than)| this.faults() + than.faults() > 0);
                let shown = match times {
                    Some(_) if is_void => cell::VOID.to_owned(),
                    // Of two zeros there is no ratio.
                    Some(times) => cell::times(times),
                    None => cell::NONE.to_owned(),
                };
                text += &format!(" {shown} |");
            }
            text.push('\n');
        }
        Ok(text)
    }
}

pub(crate) fn table<'a>(results: &'a Results, title: &str) -> Result<&'a Table, String> {
    let found = results.tables.iter().find(|table| table.title == title);
    found.ok_or_else(|| format!("the results have no workload {title:?}"))
}

pub(crate) fn metric(table: &Table, name: &str) -> Result<usize, String> {
    let found = table.metric(name);
    found.ok_or_else(|| format!("{:?} has no metric {name:?}", table.title))
}

#[cfg(test)]
mod tests {
    use waterwheel_suite::{Metric, Sample, Series};

    use super::*;

    fn results() -> Results {
        let series = |name: &'static str, values: &[f64]| Series {
            name: name.into(),
            samples: values
                .iter()
                .map(|&value| Sample {
                    values: vec![value],
                    ..Sample::default()
                })
                .collect(),
            spreads: Vec::new(),
        };
        let table = Table {
            title: "fire".to_owned(),
            work: String::new(),
            metrics: vec![Metric::lower("CPU", "ns")],
            series: vec![
                series("tokio", &[100.0, 300.0, 100.0]),
                series("own", &[50.0, 100.0, 200.0]),
            ],
            absent: Vec::new(),
            seconds: 0.0,
            failures: Vec::new(),
        };
        Results {
            tables: vec![table],
            ..crate::blocks::no_results()
        }
    }

    fn grid<'a>(rows: &'a [Row<'a>]) -> Grid<'a> {
        Grid {
            corner: "what",
            columns: &[("tokio", "tokio"), ("ours", "own"), ("other", "other")],
            ratios: &[Ratio {
                head: "tokio / ours",
                this: "own",
                than: "tokio",
            }],
            rows,
        }
    }

    #[test]
    fn a_grid_has_the_medians_and_the_median_of_the_ratios() {
        let rows = [Row {
            label: "a timer",
            workload: "fire",
            metric: "CPU",
        }];
        let text = grid(&rows).text(&results()).unwrap();
        let expected = "\
| what | tokio | ours | other | tokio / ours |
|---|--:|--:|--:|--:|
| a timer | 100 ns | 100 ns | – | 2.00 (0.50–3.00) |
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_contestant_that_fired_early_has_no_figure() {
        let rows = [Row {
            label: "a timer",
            workload: "fire",
            metric: "CPU",
        }];
        let mut results = results();
        results.tables[0].series[0].samples[1].early = 1;
        let text = grid(&rows).text(&results).unwrap();
        assert!(
            text.ends_with("| a timer | void | 100 ns | – | void |\n"),
            "{text}"
        );
    }

    #[test]
    fn a_sample_that_failed_is_an_error() {
        let rows = [Row {
            label: "a timer",
            workload: "fire",
            metric: "CPU",
        }];
        let mut results = results();
        results.tables[0].failures.push(waterwheel_suite::Failure {
            name: "own".to_owned(),
            why: "killed".to_owned(),
        });
        let why = grid(&rows).text(&results).unwrap_err();
        assert!(why.contains("own"), "{why}");
    }

    #[test]
    fn what_was_not_measured_is_an_error() {
        let row = |workload, metric| {
            [Row {
                label: "a timer",
                workload,
                metric,
            }]
        };
        let why = |row: &[Row<'_>]| grid(row).text(&results()).unwrap_err();
        assert!(why(&row("herd", "CPU")).contains("\"herd\""));
        assert!(why(&row("fire", "gap")).contains("\"gap\""));
    }
}
