//! The targets of all workloads: how they are written down, checked, judged and printed. Verdicts, not gates.

use waterwheel_suite::{Outcome, Table, Target, Verdict, Want};

use crate::alt_timer;
use crate::contestant::{Ambient, Own, Sleeps};
use crate::report::spread_text;
use crate::workloads::{self, Workload};

/// What is wanted of a timer of one's own.
pub(crate) fn of_own(title: &str, metric: &'static str, want: Want) -> Target {
    Target {
        title: title.to_owned(),
        metric,
        of: Own::<true>::NAME,
        want,
    }
}

/// What is wanted of either timer.
pub(crate) fn of_both(title: &str, metric: &'static str, want: Want) -> [Target; 2] {
    [Own::<true>::NAME, Ambient::NAME].map(|of| Target {
        title: title.to_owned(),
        metric,
        of,
        want: want.clone(),
    })
}

/// So many times better than another contestant: by a timer of one's own, and by the ambient one.
pub(crate) fn both_beat(
    than: &'static str,
    title: &str,
    metric: &'static str,
    [own, ambient]: [f64; 2],
) -> [Target; 2] {
    [(Own::<true>::NAME, own), (Ambient::NAME, ambient)].map(|(of, at_least)| Target {
        title: title.to_owned(),
        metric,
        of,
        want: Want::Times { than, at_least },
    })
}

/// A verdict on each target.
pub(crate) fn verdicts(tables: &[Table]) -> Vec<Verdict> {
    let verdict = |target: Target| target.verdict(tables);
    workloads::targets().into_iter().map(verdict).collect()
}

/// What a target names and no workload has: a slip that would end as "not run" for ever.
pub(crate) fn slips() -> Vec<String> {
    let workloads: Vec<Workload> = [false, true].into_iter().flat_map(workloads::all).collect();
    let mut slips = Vec::new();
    for target in workloads::targets() {
        let metric = target.metric;
        for title in target.titles() {
            let Some(workload) = workloads.iter().find(|workload| workload.title == title) else {
                slips.push(format!("no workload {title:?}"));
                continue;
            };
            if workload.metrics.iter().all(|m| m.name != metric) {
                slips.push(format!("{title:?} has no metric {metric:?}"));
            }
            for name in [Some(target.of), target.other()].into_iter().flatten() {
                if name != alt_timer::NAME && workload.entrants.iter().all(|e| e.name != name) {
                    slips.push(format!("{title:?} has no contestant {name:?}"));
                }
            }
        }
    }
    slips
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
