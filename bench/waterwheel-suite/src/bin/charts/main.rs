//! Draws the charts of BENCHMARKS.md from the results of the suite.
//!
//! ```text
//! cargo run --release -p waterwheel-suite --bin charts -- [results.json]
//! ```
//!
//! It reads the results of the last run of the suite (`target/suite/results.json`) or the given file, and writes
//! `docs/charts/*.svg`. A chart whose workload is not in the results is skipped with a note, and its file left
//! unchanged. Equal results make equal bytes.
//!
//! # Why not a chart library
//! plotters was tried. It writes each colour into each shape, so that a picture cannot follow the reader's dark mode; it has
//! no grouped bars; and it places everything on whole pixels. The rest is a scale and a loop over rectangles. The `svg`
//! crate, which has no dependencies, writes the document: it escapes text and sorts the attributes, which keeps the output
//! stable.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it says what it wrote")]

mod charts;
mod conditions;
mod looks;
mod source;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use waterwheel_bench_kit::chart;
use waterwheel_suite::{Results, default_path};

/// Draws the charts of BENCHMARKS.md.
#[derive(Parser)]
struct Flags {
    /// The results that the suite has written [default: suite/results.json in the target folder]
    results: Option<PathBuf>,
}

fn main() -> ExitCode {
    let path = Flags::parse().results.unwrap_or_else(default_path);
    let results = match Results::read(&path) {
        Ok(results) => results,
        Err(error) => {
            eprintln!("charts: {}: {error}", path.display());
            eprintln!("charts: `cargo bench -p waterwheel-suite` writes it");
            return ExitCode::FAILURE;
        }
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/charts");
    match write_all(&results, &folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("charts: {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn write_all(results: &Results, folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    for (name, build) in charts::ALL {
        let file = format!("{name}.svg");
        match build(results) {
            Ok((chart, source)) => {
                let conditions = conditions::line(&results.conditions, &source);
                let alert = conditions::alert(&results.conditions);
                let card = chart::frame(chart, alert, &source.faults, &conditions);
                fs::write(folder.join(&file), format!("{card}\n"))?;
                println!("docs/charts/{file}");
            }
            Err(missing) => eprintln!("charts: {file} skipped: {missing}"),
        }
    }
    Ok(())
}
