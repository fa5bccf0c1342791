//! The table and the verdict.

use std::path::Path;
use std::process::ExitCode;

use tempfile::TempDir;

use crate::check::{Checker, Rule, Undone};

/// How many broken promises of a kind are printed. The log has all.
const PRINTED: usize = 3;

/// With so many broken promises, a command ends.
pub(crate) const ENOUGH: usize = 1_000;

/// Prints the counts and the verdict.
pub(crate) fn verdict(checker: &mut Checker) -> bool {
    // What was not delivered is lost only if there was time for it.
    if checker.broken().len() <= ENOUGH {
        checker.finish();
    }
    let summary = checker.summary();
    println!(
        "{} rounds, {} requests: {} inserts answered ({} created), {} cancels ({} done), {} reschedules, {} redrives; {} deliveries",
        summary.rounds,
        summary.requests,
        summary.inserts,
        summary.created,
        summary.cancels,
        summary.cancelled,
        summary.reschedules,
        summary.redrives,
        summary.deliveries,
    );
    if summary.in_flight > 0 {
        let when = match summary.undone == Undone::default() {
            true => "at kills",
            false => "at kills and in the copies",
        };
        println!(
            "{} deliveries were in flight {when}, and {} of them came again",
            summary.in_flight, summary.duplicates
        );
    }
    if summary.occurrences > 0 {
        println!("{} occurrences of a calendar", summary.occurrences);
    }
    if checker.forgotten() > 0 {
        println!(
            "{} timers were over, and watched by their ids alone",
            checker.forgotten()
        );
    }
    if summary.full > 0 {
        println!("{} inserts were refused: full", summary.full);
    }
    if summary.undone != Undone::default() {
        println!(
            "restores undid {} inserts, and brought back {} timers that were delivered or cancelled",
            summary.undone.gone, summary.undone.again
        );
    }
    if summary.clock_moves > 0 {
        println!(
            "the wall clock was moved {} times; it was set back {} times between the call of a handler and its look at the clock",
            summary.clock_moves, summary.on_their_way
        );
    }
    let broken = checker.broken();
    let counts = Rule::ALL.map(|rule| {
        let count = broken.iter().filter(|(it, _)| *it == rule).count();
        format!("{rule} {count}")
    });
    println!("{}", counts.join(", "));
    for rule in Rule::ALL {
        let of_it = broken.iter().filter(|(it, _)| *it == rule);
        for (_, text) in of_it.take(PRINTED) {
            println!("  {rule}: {text}");
        }
    }
    broken.is_empty()
}

/// The exit code. What is needed to look into a failure is kept.
pub(crate) fn end(is_kept: bool, seed: u64, folder: TempDir) -> ExitCode {
    if is_kept {
        println!("every promise was kept");
        return ExitCode::SUCCESS;
    }
    let folder = folder.keep();
    println!(
        "A PROMISE WAS BROKEN. Seed {seed}; the log and the file are in {}",
        folder.display()
    );
    ExitCode::FAILURE
}

/// Where a command has its file and its log.
pub(crate) fn temporary_folder() -> Result<TempDir, String> {
    let mut folder = tempfile::Builder::new();
    folder.prefix("waterwheel-durable-chaos-");
    folder.tempdir().map_err(|error| error.to_string())
}

pub(crate) fn log_of(folder: &Path) -> std::path::PathBuf {
    folder.join("log")
}
