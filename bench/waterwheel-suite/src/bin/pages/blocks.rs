//! The contents of each block: one of the `grids`, or a text that is composed here.

use waterwheel_suite::{Conditions, Outcome, Results, Series, Table, Verdict, verdict_table};

use crate::cell;
use crate::grid::{self, Grid};

const GRIDS: &str = include_str!("grids.txt");
const CPU: &str = "CPU a timer";
const P50: &str = "lateness p50";

/// The text of a block. An error if there is no such block, or the results lack one of its figures.
pub(crate) fn block(name: &str, results: &Results) -> Result<String, String> {
    match name {
        "conditions" => Ok(conditions(results)),
        "summary" => summary(results),
        "ways of waking" => ways_of_waking(results),
        "count of verdicts" => Ok(count(&results.targets)),
        "misses" => Ok(verdicts(results, |outcome| outcome != Outcome::Pass)),
        "passes" => Ok(verdicts(results, |outcome| outcome == Outcome::Pass)),
        _ => {
            let texts: Result<Vec<_>, _> = grids(name).map(|grid| grid.text(results)).collect();
            let texts = texts?;
            let has_any = !texts.is_empty();
            let text = has_any.then(|| texts.join("\n"));
            text.ok_or_else(|| format!("there are no figures {name:?}"))
        }
    }
}

fn grids(name: &str) -> impl Iterator<Item = Grid<'static>> {
    grid::read(GRIDS)
        .into_iter()
        .filter(move |it| it.name == name)
}

fn series<'a>(table: &'a Table, name: &str) -> Result<&'a Series, String> {
    let found = table.series(name);
    found.ok_or_else(|| format!("{:?} has no {name:?}", table.title))
}

fn summary(results: &Results) -> Result<String, String> {
    let mut text =
        "| | `tokio::time` | waterwheel | tokio ÷ waterwheel | Intel |\n|---|--:|--:|--:|--:|\n"
            .to_owned();
    for row in grids("summary").flat_map(|grid| grid.rows) {
        let [label, workload, metric, other] = row[..] else {
            return Err(format!("{row:?} has not four cells"));
        };
        let table = grid::table(results, workload)?;
        let index = grid::metric(table, metric)?;
        let (tokio, ours) = (series(table, "tokio")?, series(table, "current")?);
        let unit = &table.metrics[index].unit;
        let times = table.times_better(ours, tokio, index);
        let shown = |series: &Series| cell::value(series.spread(index).median, unit);
        let [tokio, ours] = cell::winner([shown(tokio), shown(ours)], times);
        let times = cell::times(times);
        text += &format!("| {label} | {tokio} | {ours} | {times} | {other} |\n");
    }
    let Conditions {
        processor,
        cores,
        workers,
        date,
        ..
    } = &results.conditions;
    text += &format!(
        "\nRatios above 1 favour waterwheel. Each is the median over paired rounds, with its range, and so can differ from the quotient of the cells. Bold marks the winner; there is none if the range includes 1 ({processor}, {cores} cores, {workers} workers, {date}, a busy host; Intel: two cores, an [older run][benchmarks])."
    );
    Ok(text)
}

/// CPU and lateness in one row for each way of waking: both from one sample, and so from one process.
fn ways_of_waking(results: &Results) -> Result<String, String> {
    const RATES: [(&str, &str); 4] = [
        ("100 a second", "rate, 100 a second"),
        ("1000", "rate, 1000 a second"),
        ("10 000", "rate, 10000 a second"),
        ("100 000", "rate, 100000 a second"),
    ];
    const WAYS: [(&str, &str); 6] = [
        ("`tokio::time`", "tokio"),
        ("`Watched`, the runtime's", "current"),
        ("`Watched`, own", "own"),
        ("`WatchedClosely`", "own, watched closely"),
        ("`Thread`", "own, thread"),
        ("`TokioOnly`", "own, tokio only"),
    ];
    let heads = RATES.map(|(head, _)| head).join(" | ");
    let mut text =
        format!("| CPU a timer, of tokio's; lateness p50 | {heads} |\n|---|--:|--:|--:|--:|\n");
    for (label, contestant) in WAYS {
        text += &format!("| {label} |");
        for (_, workload) in RATES {
            let table = grid::table(results, workload)?;
            let (this, tokio) = (series(table, contestant)?, series(table, "tokio")?);
            let (cpu, p50) = (grid::metric(table, CPU)?, grid::metric(table, P50)?);
            let share = table.times_better(tokio, this, cpu).median;
            let lateness = cell::value(this.spread(p50).median, &table.metrics[p50].unit);
            text += &format!(" {share:.2} ×, {lateness} |");
        }
        text.push('\n');
    }
    Ok(text)
}

fn conditions(results: &Results) -> String {
    let conditions = &results.conditions;
    let versions = conditions.versions.iter();
    let versions: Vec<_> = versions
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let rustc = conditions.rustc.split(" (").next().unwrap_or_default();
    let mut text = format!(
        "{}, {}; {}; {rustc}; {}, {} cores; multi-thread runtimes with {} workers; {} rounds at least where \
         figures vary.",
        conditions.date,
        if conditions.commit.is_empty() {
            "commit unknown".to_owned()
        } else {
            format!("commit `{}`", conditions.commit)
        },
        versions.join(", "),
        conditions.processor,
        conditions.cores,
        conditions.workers,
        conditions.rounds,
    );
    if conditions.quick || conditions.debug_assertions {
        text += " **A quick run or one with debug assertions: no figure here is to be quoted.**";
    }
    text
}

fn count(verdicts: &[Verdict]) -> String {
    let count = |outcome| verdicts.iter().filter(|v| v.outcome == outcome).count();
    let mut text = format!(
        "Of {} targets {} hold in this run",
        verdicts.len(),
        count(Outcome::Pass)
    );
    for (outcome, what) in [
        (
            Outcome::Void,
            "void, since a peer of the comparison fired early",
        ),
        (Outcome::NotRun, "not run"),
    ] {
        let count = count(outcome);
        if count > 0 {
            text += &format!(", {count} are {what}");
        }
    }
    text + "."
}

fn verdicts(results: &Results, which: impl Fn(Outcome) -> bool) -> String {
    verdict_table(results.targets.iter().filter(|v| which(v.outcome)), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conditions_say_when_no_figure_is_to_be_quoted() {
        let mut results = Results {
            conditions: Conditions {
                versions: [("tokio".to_owned(), "1.49.0".to_owned())].into(),
                commit: "abc".to_owned(),
                date: "2026-11-22".to_owned(),
                rustc: "rustc 1.95.0 (x)".to_owned(),
                processor: "a processor".to_owned(),
                quick: true,
                ..Conditions::default()
            },
            ..Results::default()
        };
        assert!(conditions(&results).contains("quick run"));
        results.conditions.quick = false;
        let text = conditions(&results);
        assert!(
            text.starts_with("2026-11-22, commit `abc`; tokio 1.49.0; rustc 1.95.0; a processor")
        );
        assert!(!text.contains("quick"));
    }

    #[test]
    fn verdicts_are_counted_and_listed_by_outcome() {
        let verdict = |title: &str, outcome| Verdict {
            title: title.to_owned(),
            metric: "CPU".to_owned(),
            of: "own".to_owned(),
            wanted: "at most 1 x tokio".to_owned(),
            measured: None,
            outcome,
        };
        let results = Results {
            targets: vec![
                verdict("held", Outcome::Pass),
                verdict("missed", Outcome::Miss),
                verdict("void", Outcome::Void),
            ],
            ..Results::default()
        };
        let text = block("count of verdicts", &results).unwrap();
        assert!(
            text.starts_with("Of 3 targets 1 hold in this run, 1 are void"),
            "{text}"
        );
        let listed = |name| block(name, &results).unwrap();
        assert!(listed("misses").contains("missed") && listed("misses").contains("void"));
        assert!(listed("misses").contains("VOID: see the faults"));
        assert!(!listed("misses").contains("held") && listed("passes").contains("held"));
        assert!(block("other", &results).is_err());
    }
}
