//! A table of a page: a row for each figure, a column for each contestant, and how many times better ours is.

use waterwheel_suite::{Results, Table};

use crate::cell;

/// A table, by the names under which the results contain each cell.
#[derive(Default)]
pub(crate) struct Grid<'a> {
    /// The name of its block.
    pub(crate) name: &'a str,
    /// The text above the labels.
    corner: &'a str,
    /// The heading of each column, and its contestant.
    columns: Vec<(&'a str, &'a str)>,
    /// The heading, and how many times better one contestant is: `this than that`.
    ratios: Vec<(&'a str, &'a str)>,
    /// The label, the title of the workload, and one of its metrics.
    pub(crate) rows: Vec<Vec<&'a str>>,
}

/// Parses the grids of a text in the format of `grids.txt`.
pub(crate) fn read(text: &str) -> Vec<Grid<'_>> {
    let mut grids: Vec<Grid<'_>> = Vec::new();
    let lines = text.lines().filter(|line| !line.is_empty());
    for line in lines.filter(|line| !line.starts_with('#')) {
        if let Some((name, corner)) = line.strip_prefix('[').and_then(|it| it.split_once(']')) {
            let corner = corner.trim();
            grids.push(Grid {
                name,
                corner,
                ..Grid::default()
            });
            continue;
        }
        let grid = grids
            .last_mut()
            .expect("the name of a grid before its lines");
        let (kind, rest) = match (line.strip_prefix("= "), line.strip_prefix("/ ")) {
            (Some(columns), _) => (Some(&mut grid.columns), columns),
            (_, Some(ratios)) => (Some(&mut grid.ratios), ratios),
            _ => (None, line),
        };
        let cells = rest.split(" | ");
        match kind {
            Some(pairs) => *pairs = cells.filter_map(|it| it.rsplit_once(": ")).collect(),
            None => grid.rows.push(cells.collect()),
        }
    }
    grids
}

impl Grid<'_> {
    /// Renders the grid as Markdown. An error if the results lack a workload or metric, or if a sample failed. A contestant that
    /// a workload lacks is a dash. One whose timers fired early or never has no figure.
    pub(crate) fn text(&self, results: &Results) -> Result<String, String> {
        let heads = self.columns.iter().chain(&self.ratios);
        let heads: Vec<_> = heads.map(|(head, _)| *head).collect();
        let mut text = format!("| {} | {} |\n", self.corner, heads.join(" | "));
        text += &format!("|---|{}\n", "--:|".repeat(heads.len()));
        for row in &self.rows {
            let [label, workload, metric] = row[..] else {
                return Err(format!("{row:?} has not three cells"));
            };
            let table = table(results, workload)?;
            let metric = self::metric(table, metric)?;
            if let Some(failure) = table.failures.first() {
                return Err(format!("{workload}, {}: a sample failed", failure.name));
            }
            text += &format!("| {label} |");
            let unit = &table.metrics[metric].unit;
            for (_, contestant) in &self.columns {
                let shown = match table.series(contestant) {
                    Some(series) if series.faults() > 0 => cell::VOID.to_owned(),
                    Some(series) => cell::value(series.spread(metric).median, unit),
                    None => cell::NONE.to_owned(),
                };
                text += &format!(" {shown} |");
            }
            for (_, pair) in &self.ratios {
                let (this, than) = pair.split_once(" than ").unwrap_or_default();
                let pair = table.series(this).zip(table.series(than));
                let times = pair.map(|(this, than)| table.times_better(this, than, metric));
                let is_void = pair.is_some_and(|(this, than)| this.faults() + than.faults() > 0);
                let shown = match times {
                    Some(_) if is_void => cell::VOID.to_owned(),
                    // Two zeros have no ratio.
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
            samples: values
                .iter()
                .map(|&value| Sample::of(vec![value]))
                .collect(),
            ..Series::new(name)
        };
        let table = Table {
            title: "fire".to_owned(),
            metrics: vec![Metric::lower("CPU", "ns")],
            series: vec![
                series("tokio", &[100.0, 300.0, 100.0]),
                series("own", &[50.0, 100.0, 200.0]),
            ],
            ..Table::default()
        };
        Results {
            tables: vec![table],
            ..Results::default()
        }
    }

    fn text(row: &str, results: &Results) -> Result<String, String> {
        let grid = format!(
            "# A comment.\n[a grid] what\n= tokio: tokio | ours: own | other: other\n/ tokio / ours: own than tokio\n{row}\n"
        );
        let grids = read(&grid);
        assert_eq!(grids[0].name, "a grid");
        grids[0].text(results)
    }

    #[test]
    fn a_grid_has_the_medians_and_the_median_of_the_ratios() {
        let row = "a timer | fire | CPU";
        let expected = "\
| what | tokio | ours | other | tokio / ours |
|---|--:|--:|--:|--:|
| a timer | 100 ns | 100 ns | – | 2.00 (0.50–3.00) |
";
        let mut results = results();
        assert_eq!(text(row, &results).unwrap(), expected);
        // A contestant that fired early has no figure.
        results.tables[0].series[0].samples[1].early = 1;
        let text = text(row, &results).unwrap();
        let expected = "| a timer | void | 100 ns | – | void |\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn what_was_not_measured_is_an_error() {
        let mut results = results();
        let why = |row: &str, results: &Results| text(row, results).unwrap_err();
        assert!(why("a timer | herd | CPU", &results).contains("\"herd\""));
        assert!(why("a timer | fire | gap", &results).contains("\"gap\""));
        assert!(why("a timer | fire", &results).contains("three cells"));
        results.tables[0].failures.push(waterwheel_suite::Failure {
            name: "own".to_owned(),
            why: "killed".to_owned(),
        });
        assert!(why("a timer | fire | CPU", &results).contains("own"));
    }
}
