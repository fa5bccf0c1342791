//! The table and the verdict.

use std::path::Path;
use std::process::ExitCode;

use tempfile::TempDir;

use crate::check::{Checker, Rule};

/// The number of broken promises of a kind that are printed. The log has all.
const PRINTED: usize = 3;

/// The number of broken promises at which a command ends.
pub(crate) const ENOUGH: usize = 1_000;

/// Prints the counts and the verdict.
pub(crate) fn verdict(checker: &mut Checker) -> bool {
    // Undelivered timers are lost only if there was time to deliver them.
    if checker.broken().len() <= ENOUGH {
        checker.finish();
    }
    let summary = checker.summary();
    println!("{summary:#?}");
    println!(
        "{} timers were over, and watched by their ids alone",
        checker.forgotten()
    );
    if summary.full > 0 {
        println!("{} inserts were refused: full", summary.full);
    }
    let broken = checker.broken();
    let of = |rule| broken.iter().filter(move |(it, _)| *it == rule);
    let counts = Rule::ALL.map(|(rule, words)| format!("{words} {}", of(rule).count()));
    println!("{}", counts.join(", "));
    for (rule, words) in Rule::ALL {
        for (_, text) in of(rule).take(PRINTED) {
            println!("  {words}: {text}");
        }
    }
    broken.is_empty()
}

/// Returns the exit code. Keeps the files that are needed to investigate a failure.
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

/// The folder for a command's file and log.
pub(crate) fn temporary_folder() -> Result<TempDir, String> {
    let mut folder = tempfile::Builder::new();
    folder.prefix("waterwheel-durable-chaos-");
    folder.tempdir().map_err(in_words)
}

pub(crate) fn log_of(folder: &Path) -> std::path::PathBuf {
    folder.join("log")
}

pub(crate) fn in_words(error: impl std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
