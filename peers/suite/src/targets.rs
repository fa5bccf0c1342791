//! What the project set itself, and whether this run has it. A verdict, not a gate.

use crate::contestant::{Contestant, Own};
use crate::report::{Table, ratio_text};
use crate::rounds::against_tokio;
use crate::workloads::{cancel, herd};

struct Target {
    title: String,
    metric: usize,
    text: &'static str,
    times: f64,
}

/// Prints a line for each target; one whose workload was not run at its size has no verdict.
pub(crate) fn print(tables: &[Table]) {
    println!("\n## Targets\n");
    println!(
        "| {} against tokio | wanted | measured (min..max) | verdict |",
        Own::<true>::NAME
    );
    println!("|:--|--:|--:|:--|");
    for Target {
        title,
        metric,
        text,
        times,
    } in targets()
    {
        let table = tables.iter().find(|table| table.title == title);
        let ratio = table.and_then(|table| against_tokio(&table.series, Own::<true>::NAME, metric));
        let verdict = match ratio {
            None => "not run",
            Some(_) if table.is_some_and(|table| table.faults() > 0) => "VOID: see the faults",
            Some(ratio) if ratio.median >= times => "PASS",
            Some(_) => "MISS",
        };
        let measured = ratio.map_or("-".to_owned(), ratio_text);
        println!("| {title}: {text} | >= {times}x | {measured} | {verdict} |");
    }
}

fn targets() -> Vec<Target> {
    let mut targets = Vec::new();
    // With nothing else pending, when each of tokio's registrations wakes its driver. With 100 k
    // pending none does, and on one thread tokio is at twice the floor: the table tells.
    for (threads, times) in [(1, 2.0), (2, 3.0)] {
        let title = cancel::Load {
            threads,
            others: 0,
            operations: 0,
        }
        .title();
        targets.push(Target {
            title,
            metric: 0,
            text: "less time an operation",
            times,
        });
    }
    let text = "smaller heartbeat gap";
    targets.push(Target {
        title: herd::title(1_000_000),
        metric: 0,
        text,
        times: 10.0,
    });
    targets
}
