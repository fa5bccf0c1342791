//! Which figures each block shows.

use waterwheel_suite::{Conditions, Outcome, Results, Verdict, spread_text};

use crate::cell;
use crate::grid::{self, Grid, Ratio, Row};

const CPU: &str = "CPU a timer";
const P50: &str = "lateness p50";
const P99: &str = "lateness p99";
const SWITCHES: &str = "context switches a timer";
const OPERATION: &str = "one operation, per thread";

const TOKIO: (&str, &str) = ("`tokio::time`", "tokio");
const ALT: (&str, &str) = ("its alt timer", "tokio, alt timer");
const CURRENT: (&str, &str) = ("the runtime's", "current");
const OWN: (&str, &str) = ("own `Timer`", "own");
const PRECISE: (&str, &str) = ("`Precise`", "own, precise");
const FRUGAL: (&str, &str) = ("`Frugal`", "own, frugal");
const PINGORA: (&str, &str) = ("pingora", "pingora-timeout");
const FLOOR: (&str, &str) = ("floor", "floor");

const CURRENT_TIMES: Ratio<'_> = Ratio {
    head: "tokio / the runtime's",
    this: "current",
    than: "tokio",
};
const OWN_TIMES: Ratio<'_> = Ratio {
    head: "tokio / own",
    this: "own",
    than: "tokio",
};

/// The text of a block. An error if there is no such block, or the results lack a figure of it.
pub(crate) fn block(name: &str, results: &Results) -> Result<String, String> {
    match name {
        "conditions" => Ok(conditions(results)),
        "summary" => summary(results),
        "quiet services" => QUIET.text(results),
        "ways of waking" => ways_of_waking(results),
        "a service" => SERVICE.text(results),
        "operations" => OPERATIONS.text(results),
        "firing" => FIRING.text(results),
        "many calls" => CALLS.text(results),
        "the wheel" => WHEEL.text(results),
        "tests" => TESTS.text(results),
        "count of verdicts" => Ok(count(&results.targets)),
        "misses" => Ok(verdicts(results, |outcome| outcome != Outcome::Pass)),
        "passes" => Ok(verdicts(results, |outcome| outcome == Outcome::Pass)),
        _ => Err(format!("there are no figures {name:?}")),
    }
}

/// The window of the README: what concerns the most users.
const SUMMARY: Grid<'_> = Grid {
    corner: "",
    columns: &[TOKIO, ("waterwheel", "current")],
    ratios: &[Ratio {
        head: "times better",
        ..CURRENT_TIMES
    }],
    rows: &[
        row(
            "arm and cancel, on each of two busy workers",
            "cancel, 2 threads, 0 pending",
            OPERATION,
        ),
        row(
            "a million tasks wake at once: the longest pause of others",
            "herd, 1000000 tasks",
            "longest heartbeat gap",
        ),
        row(
            "1000 timers a second: lateness, median",
            "rate, 1000 a second",
            P50,
        ),
        row("and CPU a timer", "rate, 1000 a second", CPU),
        row(
            "100 timers a second: CPU a timer",
            "rate, 100 a second",
            CPU,
        ),
    ],
};

const QUIET: Grid<'_> = Grid {
    corner: "timers a second",
    columns: &[TOKIO, CURRENT, OWN, PRECISE, FRUGAL],
    ratios: &[CURRENT_TIMES],
    rows: &[
        row("100: CPU a timer", "rate, 100 a second", CPU),
        row("lateness p50", "rate, 100 a second", P50),
        row("lateness p99", "rate, 100 a second", P99),
        row("context switches a timer", "rate, 100 a second", SWITCHES),
        row("1000: CPU a timer", "rate, 1000 a second", CPU),
        row("lateness p50", "rate, 1000 a second", P50),
        row("lateness p99", "rate, 1000 a second", P99),
        row("context switches a timer", "rate, 1000 a second", SWITCHES),
        row("10 000: CPU a timer", "rate, 10000 a second", CPU),
        row("lateness p50", "rate, 10000 a second", P50),
        row("lateness p99", "rate, 10000 a second", P99),
        row("context switches a timer", "rate, 10000 a second", SWITCHES),
        row("100 000: CPU a timer", "rate, 100000 a second", CPU),
        row("lateness p50", "rate, 100000 a second", P50),
        row("lateness p99", "rate, 100000 a second", P99),
        row(
            "context switches a timer",
            "rate, 100000 a second",
            SWITCHES,
        ),
        row(
            "one task, sleeps of 1 to 2 ms: lateness p50",
            "rate, lone",
            P50,
        ),
        row("CPU a timer", "rate, lone", CPU),
        row(
            "one interval of a second: context switches in 10 s",
            "interval, 1 of 1000 ms",
            "context switches",
        ),
        row(
            "a million timers pending, none due: CPU of the count",
            "idle, 1000000 timers",
            "CPU",
        ),
    ],
};

const SERVICE: Grid<'_> = Grid {
    corner: "`rpc_timeouts`",
    columns: &[TOKIO, CURRENT],
    ratios: &[CURRENT_TIMES],
    rows: &[
        row("CPU a call", "service, rpc_timeouts", "CPU a call"),
        row("calls a second", "service, rpc_timeouts", "calls"),
        row(
            "lateness of the calls that time out, p50",
            "service, rpc_timeouts",
            P50,
        ),
        row("lateness p99", "service, rpc_timeouts", P99),
    ],
};

const OPERATIONS: Grid<'_> = Grid {
    corner: "on each thread",
    columns: &[TOKIO, ALT, OWN, CURRENT, PINGORA, FLOOR],
    ratios: &[OWN_TIMES, CURRENT_TIMES],
    rows: &[
        row(
            "`cancel`: arm and cancel, 1 thread",
            "cancel, 1 thread, 0 pending",
            OPERATION,
        ),
        row(
            "beside 100 000 others, 1 thread",
            "cancel, 1 thread, 100000 pending",
            OPERATION,
        ),
        row(
            "`cancel`, 2 threads",
            "cancel, 2 threads, 0 pending",
            OPERATION,
        ),
        row(
            "beside 100 000 others, 2 threads",
            "cancel, 2 threads, 100000 pending",
            OPERATION,
        ),
        row(
            "each in a new task, less its spawn, 2 threads",
            "cancel/fresh-task, 2 threads",
            "net of the spawn",
        ),
        row(
            "armed on one thread, cancelled on the other",
            "foreign cancel",
            OPERATION,
        ),
        row(
            "`churn`: of a million, drop the oldest and arm a new one, 1 thread",
            "churn 1000000, 1 thread",
            OPERATION,
        ),
        row("`churn`, 2 threads", "churn 1000000, 2 threads", OPERATION),
        row(
            "`timeout` of a call that is ready at its second poll, 1 thread",
            "timeout/pending, 1 thread",
            OPERATION,
        ),
        row(
            "the same, 2 threads",
            "timeout/pending, 2 threads",
            OPERATION,
        ),
        row(
            "`timeout` of a call that is ready at once",
            "timeout/ready, 1 thread",
            OPERATION,
        ),
        row(
            "`postpone`: push back one of 100 000 sleeps",
            "postpone 100000",
            OPERATION,
        ),
        row("and poll it", "postpone 100000, then poll", OPERATION),
    ],
};

const FIRING: Grid<'_> = Grid {
    corner: "",
    columns: &[TOKIO, ALT, OWN, CURRENT, FRUGAL],
    ratios: &[OWN_TIMES, CURRENT_TIMES],
    rows: &[
        row(
            "`herd`, a million tasks asleep to one instant: longest gap of a 1 ms heartbeat",
            "herd, 1000000 tasks",
            "longest heartbeat gap",
        ),
        row("until all ran", "herd, 1000000 tasks", "until all ran"),
        row(
            "`fire`, 100 000 timers over a second: lateness p50",
            "fire, 100000 timers",
            P50,
        ),
        row("lateness p99", "fire, 100000 timers", P99),
        row("CPU a timer", "fire, 100000 timers", CPU),
        row(
            "`fire`, a million timers over a second: lateness p50",
            "fire, 1000000 timers",
            P50,
        ),
        row("lateness p99", "fire, 1000000 timers", P99),
        row("CPU a timer", "fire, 1000000 timers", CPU),
        row(
            "`interval`, 10 000 of 100 ms: CPU a tick",
            "interval, 10000 of 100 ms",
            "CPU a tick",
        ),
    ],
};

const CALLS: Grid<'_> = Grid {
    corner: "in-process calls a second",
    columns: &[("no time limit", "bare"), TOKIO, ALT, OWN, CURRENT, PINGORA],
    ratios: &[OWN_TIMES, CURRENT_TIMES],
    rows: &[
        row("1 client", "rpc, 1 client", "calls"),
        row("2 clients", "rpc, 2 clients", "calls"),
    ],
};

const WHEEL: Grid<'_> = Grid {
    corner: "a million timers",
    columns: &[
        ("due over 1 s", "over 1 s"),
        ("1 min", "over 1 min"),
        ("1 h", "over 1 h"),
        ("1 min, in turn", "over 1 min, in turn"),
    ],
    ratios: &[],
    rows: &[
        row("insert", "wheel, 1000000 timers", "insert"),
        row(
            "cancel, oldest first",
            "wheel, 1000000 timers",
            "cancel, oldest first",
        ),
        row(
            "cancel at random",
            "wheel, 1000000 timers",
            "cancel at random",
        ),
        row(
            "insert after cancels at random",
            "wheel, 1000000 timers",
            "insert after cancels at random",
        ),
        row("expire", "wheel, 1000000 timers", "expire"),
    ],
};

const TESTS: Grid<'_> = Grid {
    corner: "a sleep of 1 ms on a paused clock: CPU",
    columns: &[TOKIO, OWN, CURRENT],
    ratios: &[OWN_TIMES, CURRENT_TIMES],
    rows: &[
        row("one a `block_on`", "simulate, 1 sleep", "CPU a sleep"),
        row("50 tasks", "simulate, 50 tasks", "CPU a sleep"),
        row(
            "one a `block_on`, not optimised",
            "simulate, 1 sleep, profile dev",
            "CPU a sleep",
        ),
        row(
            "50 tasks, not optimised",
            "simulate, 50 tasks, profile dev",
            "CPU a sleep",
        ),
    ],
};

const fn row<'a>(label: &'a str, workload: &'a str, metric: &'a str) -> Row<'a> {
    Row {
        label,
        workload,
        metric,
    }
}

fn summary(results: &Results) -> Result<String, String> {
    let Conditions {
        processor,
        cores,
        workers,
        ..
    } = &results.conditions;
    let machine = format!("{cores} cores of an {processor}, a runtime with {workers} workers");
    Ok(format!(
        "{}\nAbove 1, waterwheel is better: the median of pairs of rounds, not the ratio of the two cells ({machine}).",
        SUMMARY.text(results)?
    ))
}

/// CPU and lateness in one row for each way of waking: of one sample both, so of one process.
fn ways_of_waking(results: &Results) -> Result<String, String> {
    const RATES: [(&str, &str); 4] = [
        ("100 a second", "rate, 100 a second"),
        ("1000", "rate, 1000 a second"),
        ("10 000", "rate, 10000 a second"),
        ("100 000", "rate, 100000 a second"),
    ];
    const WAYS: [(&str, &str); 5] = [
        ("`tokio::time`", "tokio"),
        ("`Guarded`, the runtime's", "current"),
        ("`Guarded`, own", "own"),
        ("`Precise`", "own, precise"),
        ("`Frugal`", "own, frugal"),
    ];
    let heads = RATES.map(|(head, _)| head).join(" | ");
    let mut text =
        format!("| CPU a timer, of tokio's; lateness p50 | {heads} |\n|---|--:|--:|--:|--:|\n");
    for (label, contestant) in WAYS {
        text += &format!("| {label} |");
        for (_, workload) in RATES {
            let table = grid::table(results, workload)?;
            let series = |name| {
                table
                    .series(name)
                    .ok_or_else(|| format!("{workload:?} has no {name:?}"))
            };
            let (this, tokio) = (series(contestant)?, series("tokio")?);
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
    let mut text =
        "| workload: metric | contestant | wanted | measured (min..max) | verdict |\n".to_owned();
    text += "|:--|:--|:--|--:|:--|\n";
    for verdict in results.targets.iter().filter(|v| which(v.outcome)) {
        let Verdict {
            title,
            metric,
            of,
            wanted,
            ..
        } = verdict;
        let measured = verdict.measured.map_or("-".to_owned(), spread_text);
        let outcome = match verdict.outcome {
            Outcome::Pass => "holds",
            Outcome::Miss => "does not hold",
            Outcome::NotRun => "not run",
            Outcome::Void => "void",
        };
        text += &format!("| {title}: {metric} | {of} | {wanted} | {measured} | {outcome} |\n");
    }
    text
}

/// For tests.
#[cfg(test)]
pub(crate) fn no_results() -> Results {
    Results {
        conditions: Conditions {
            versions: [("tokio".to_owned(), "1.49.0".to_owned())].into(),
            commit: "abc".to_owned(),
            date: "2026-11-22".to_owned(),
            no_alt_timer: None,
            rustc: "rustc 1.95.0 (x)".to_owned(),
            system: String::new(),
            processor: "a processor".to_owned(),
            cores: 2,
            workers: 2,
            batch: 128,
            load: String::new(),
            rounds: 9,
            quick: true,
            debug_assertions: false,
        },
        tables: Vec::new(),
        targets: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conditions_say_when_no_figure_is_to_be_quoted() {
        let mut results = no_results();
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
        let mut results = no_results();
        results.targets = vec![
            verdict("held", Outcome::Pass),
            verdict("missed", Outcome::Miss),
            verdict("void", Outcome::Void),
        ];
        let text = block("count of verdicts", &results).unwrap();
        assert!(
            text.starts_with("Of 3 targets 1 hold in this run, 1 are void"),
            "{text}"
        );
        let listed = |name| block(name, &results).unwrap();
        assert!(listed("misses").contains("missed") && listed("misses").contains("void"));
        assert!(!listed("misses").contains("held") && listed("passes").contains("held"));
        assert!(block("other", &results).is_err());
    }
}
