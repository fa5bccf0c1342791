//! One file per chart: the tables that it uses, and its texts.

mod bars;
mod growth;
mod lateness;

use waterwheel_bench_kit::chart::Chart;
use waterwheel_suite::Results;

use crate::source::Source;
use crate::tables::Missing;

/// Makes a chart from the results of a run, and names the source of its figures.
type Build = fn(&Results) -> Result<(Chart, Source), Missing>;

/// The charts, by file name.
pub(crate) const ALL: [(&str, Build); 5] = [
    ("cancel", bars::cancel),
    ("herd", bars::herd),
    ("lateness", lateness::chart),
    ("memory", bars::memory),
    ("growth", growth::chart),
];

#[cfg(test)]
mod tests {
    use waterwheel_bench_kit::chart::frame;
    use waterwheel_suite::{Conditions, Metric, Sample, Series, Table};

    use super::*;
    use crate::conditions;

    fn results(tables: Vec<Table>) -> Results {
        let conditions = Conditions {
            versions: [("tokio".to_owned(), "1.2.3".to_owned())].into(),
            rustc: "rustc 1.95.0 (59807616e 2026-04-14)".to_owned(),
            quick: true,
            ..Conditions::default()
        };
        Results {
            conditions,
            tables,
            ..Results::default()
        }
    }

    fn table(title: &str, names: &[&'static str], values: &[f64]) -> Table {
        let series = |name: &&'static str| Series {
            samples: values.iter().map(|it| Sample::of(vec![*it])).collect(),
            ..Series::new(name)
        };
        Table {
            title: title.to_owned(),
            metrics: vec![Metric::lower("one operation, per thread", "ns")],
            series: names.iter().map(series).collect(),
            ..Table::default()
        }
    }

    fn cancel_tables(names: &[&'static str], values: &[f64]) -> Vec<Table> {
        let titles = [
            "1 thread, 0",
            "2 threads, 0",
            "1 thread, 100000",
            "2 threads, 100000",
        ];
        titles
            .map(|load| table(&format!("cancel, {load} pending"), names, values))
            .to_vec()
    }

    fn drawn(results: &Results, name: &str) -> Result<String, Missing> {
        let (_, build) = ALL
            .iter()
            .find(|(known, _)| *known == name)
            .expect("a chart of this name");
        let (chart, source) = build(results)?;
        let line = conditions::line(&results.conditions, &source);
        let alert = conditions::alert(&results.conditions);
        Ok(frame(chart, alert, &source.faults, &line).to_string())
    }

    #[test]
    fn what_was_not_run_is_skipped() {
        let nothing = results(Vec::new());
        for (name, build) in ALL {
            assert!(build(&nothing).is_err(), "{name}");
        }
        let mut three = cancel_tables(&["tokio"], &[1.0]);
        three.pop();
        let missing = drawn(&results(three), "cancel").expect_err("a table is missing");
        assert!(
            missing.to_string().contains("2 threads, 100000"),
            "{missing}"
        );
    }

    #[test]
    fn the_same_results_make_the_same_bytes() {
        let results = results(cancel_tables(&["tokio", "own", "floor"], &[9.0, 7.0, 8.0]));
        let once = drawn(&results, "cancel").expect("all tables are there");
        assert_eq!(drawn(&results, "cancel"), Ok(once.clone()));
        assert!(
            once.contains("tokio 1.2.3, rustc 1.95.0") && once.contains("QUICK"),
            "{once}"
        );
    }

    #[test]
    fn samples_without_figures_do_not_panic() {
        for values in [&[f64::NAN] as &[f64], &[], &[0.0]] {
            let drawn = drawn(
                &results(cancel_tables(&["own", "someone"], values)),
                "cancel",
            );
            let text = drawn.expect("all tables are there");
            assert!(text.contains("someone") && !text.contains("NaN") && !text.contains("inf"));
        }
    }
}
