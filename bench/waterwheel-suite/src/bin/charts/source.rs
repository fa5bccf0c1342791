//! The source of a chart's figures, for the footer of its card.

use waterwheel_suite::{Failure, Series, Table};

use crate::looks::look;

/// The packages that were measured, the number of rounds, and the faults.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// The packages whose versions are named.
    pub(crate) packages: Vec<&'static str>,
    /// The fewest and the most samples of a contestant: a failed one is missing.
    pub(crate) rounds: (usize, usize),
    /// The faults, one sentence each.
    pub(crate) faults: Vec<String>,
}

impl Source {
    /// The source of all tables that a chart draws.
    pub(crate) fn of<'a>(tables: impl Iterator<Item = &'a Table> + Clone) -> Self {
        let mut packages = Vec::new();
        for name in contestants(tables.clone()) {
            let package = look(name).package;
            packages.extend(package.filter(|it| !packages.contains(it)));
        }
        let series = tables.clone().flat_map(|table| &table.series);
        let rounds = series.map(|series| series.samples.len());
        let rounds = rounds.filter(|rounds| *rounds > 0);
        let fewest = rounds.clone().min().unwrap_or(0);
        Self {
            packages,
            rounds: (fewest, rounds.max().unwrap_or(0)),
            faults: tables.flat_map(faults).collect(),
        }
    }
}

/// The contestants of these tables in the order of the charts, without the floors.
pub(crate) fn contestants<'a>(tables: impl Iterator<Item = &'a Table>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for series in tables.flat_map(|table| &table.series) {
        if !is_floor(series) && !names.contains(&&*series.name) {
            names.push(&series.name);
        }
    }
    // A stable sort: unknown contestants stay in the order of the report.
    names.sort_by_key(|name| look(name).rank);
    names
}

/// Whether this is a floor, which no contestant can undercut by much.
pub(crate) fn is_floor(series: &Series) -> bool {
    series.name.starts_with("floor")
}

fn faults(table: &Table) -> Vec<String> {
    let title = &table.title;
    let fault = |series: &Series| {
        let (early, lost) = (series.count(|s| s.early), series.count(|s| s.lost));
        let name = &series.name;
        let text = format!("{title}: {early} timers of {name} fired early and {lost} never fired.");
        (early + lost > 0).then_some(text)
    };
    let failure =
        |Failure { name, why }: &Failure| format!("{title}: a sample of {name} failed: {why}");
    let faults = table.series.iter().filter_map(fault);
    faults.chain(table.failures.iter().map(failure)).collect()
}

#[cfg(test)]
mod tests {
    use waterwheel_suite::Sample;

    use super::*;

    #[test]
    fn faults_are_named_in_the_footer() {
        let series = |name: &'static str, samples: &[Sample]| Series {
            samples: samples.to_vec(),
            ..Series::new(name)
        };
        let early = Sample {
            early: 2,
            ..Sample::default()
        };
        let table = Table {
            title: "fire".to_owned(),
            series: vec![
                series("floor", &[]),
                series("tokio", &[early, Sample::default()]),
                series("own", &[Sample::default()]),
            ],
            failures: vec![Failure {
                name: "own".to_owned(),
                why: "killed".to_owned(),
            }],
            ..Table::default()
        };
        let source = Source::of([&table].into_iter());
        assert_eq!(source.packages, ["waterwheel", "tokio"]);
        assert_eq!(source.rounds, (1, 2));
        let faults = [
            "fire: 2 timers of tokio fired early and 0 never fired.",
            "fire: a sample of own failed: killed",
        ];
        assert_eq!(source.faults, faults);
    }
}
