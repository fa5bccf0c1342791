//! How a workload writes its targets down, and how they are judged and printed. Verdicts, not gates.

use waterwheel_suite::{Outcome, Table, Target, Verdict, Want};

use crate::contestant::{Current, Guarded, Own, Sleeps};
use crate::report::spread_text;

/// What is wanted of a timer of one's own.
pub(crate) fn of_own(title: &str, metric: &'static str, want: Want) -> Target {
    Target {
        title: title.to_owned(),
        metric,
        of: Own::<Guarded>::NAME,
        want,
    }
}

/// What is wanted of a timer of one's own, and of the runtime's.
pub(crate) fn of_both(title: &str, metric: &'static str, want: Want) -> [Target; 2] {
    [Own::<Guarded>::NAME, Current::NAME].map(|of| Target {
        title: title.to_owned(),
        metric,
        of,
        want: want.clone(),
    })
}

/// How many times better than another contestant each is to be: a timer of one's own, and the runtime's.
pub(crate) fn both_beat(
    than: &'static str,
    title: &str,
    metric: &'static str,
    [own, current]: [f64; 2],
) -> [Target; 2] {
    [(Own::<Guarded>::NAME, own), (Current::NAME, current)].map(|(of, at_least)| Target {
        title: title.to_owned(),
        metric,
        of,
        want: Want::Times { than, at_least },
    })
}

/// A verdict on each target.
pub(crate) fn verdicts(targets: Vec<Target>, tables: &[Table]) -> Vec<Verdict> {
    let verdict = |target: Target| target.verdict(tables);
    targets.into_iter().map(verdict).collect()
}

/// Prints a line for each target.
pub(crate) fn print(verdicts: &[Verdict]) {
    println!("\n## Targets\n");
    println!("| workload: metric | contestant | wanted | measured (min..max) | verdict |");
    println!("|:--|:--|:--|--:|:--|");
    for verdict in verdicts {
        let Verdict {
            title,
            metric,
            of,
            wanted,
            ..
        } = verdict;
        let measured = verdict.measured.map_or("-".to_owned(), spread_text);
        let outcome = match verdict.outcome {
            Outcome::Pass => "PASS",
            Outcome::Miss => "MISS",
            Outcome::NotRun => "not run",
            Outcome::Void => "VOID: see the faults",
        };
        println!("| {title}: {metric} | {of} | {wanted} | {measured} | {outcome} |");
    }
    let count = |outcome| verdicts.iter().filter(|v| v.outcome == outcome).count();
    println!(
        "\n{} PASS, {} MISS, {} VOID, {} not run",
        count(Outcome::Pass),
        count(Outcome::Miss),
        count(Outcome::Void),
        count(Outcome::NotRun)
    );
}
