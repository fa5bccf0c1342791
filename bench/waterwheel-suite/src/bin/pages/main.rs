//! Writes the figures of a run of the suite into the pages of the repository, so that none is copied by hand.
//!
//! ```text
//! cargo run --release -p waterwheel-suite --bin pages                # from bench/waterwheel-suite/results.json
//! cargo run --release -p waterwheel-suite --bin pages -- NEW.json    # from a new run, which becomes that file
//! ```
//!
//! It writes the whole run to `bench/waterwheel-suite/results.json` and `results.md`, and fills the marked blocks of the pages
//! (`filled`). Equal results make equal bytes. A test compares the pages in the repository to the results in the repository.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it says what it wrote")]

mod blocks;
mod cell;
mod grid;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use waterwheel_bench_kit::filled;
use waterwheel_suite::{Results, report};

/// The paths of the pages from the root of the repository.
const PAGES: [&str; 4] = [
    "README.md",
    "BENCHMARKS.md",
    "docs/decisions/0004-tokio-wakes-a-watchdog-guards.md",
    "bench/waterwheel-suite/TARGETS.md",
];
const RESULTS: &str = "bench/waterwheel-suite/results.json";
const REPORT: &str = "bench/waterwheel-suite/results.md";

/// Writes the figures of a run of the suite into the pages of the repository.
#[derive(Parser)]
struct Flags {
    /// A new run, which becomes bench/waterwheel-suite/results.json [default: that file]
    results: Option<PathBuf>,
}

fn main() -> ExitCode {
    let root = root();
    let source = Flags::parse().results;
    let source = source.unwrap_or_else(|| root.join(RESULTS));
    match publish(&source, &root) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("pages: {why}");
            ExitCode::FAILURE
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn publish(source: &Path, root: &Path) -> Result<(), String> {
    let results = read(source)?;
    // Make all texts first, so that nothing is written if a page needs a figure that the run lacks.
    let texts = texts(&results, root)?;
    results
        .write(&root.join(RESULTS))
        .map_err(|error| format!("{RESULTS}: {error}"))?;
    println!("{RESULTS}");
    for (path, text) in texts {
        fs::write(root.join(path), text).map_err(|error| format!("{path}: {error}"))?;
        println!("{path}");
    }
    Ok(())
}

fn read(source: &Path) -> Result<Results, String> {
    Results::read(source).map_err(|error| format!("{}: {error}", source.display()))
}

/// Each file with its text for these results.
fn texts(results: &Results, root: &Path) -> Result<Vec<(&'static str, String)>, String> {
    let mut texts = vec![(REPORT, report(results))];
    for path in PAGES {
        let before = fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"))?;
        let block = |name: &str| blocks::block(name, results);
        let after = filled(&before, block).map_err(|why| format!("{path}: {why}"))?;
        texts.push((path, after));
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_show_the_committed_results() {
        let root = root();
        let results = read(&root.join(RESULTS)).unwrap();
        for (path, text) in texts(&results, &root).unwrap() {
            let committed = fs::read_to_string(root.join(path)).unwrap();
            assert!(
                text == committed,
                "{path} has other figures: `cargo run -p waterwheel-suite --bin pages` writes it"
            );
        }
    }
}
