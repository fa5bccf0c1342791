//! Draws the charts of BENCHMARKS.md from the results of the suite.
//!
//! ```text
//! cargo run --release -p waterwheel-suite --bin charts -- [results.json]
//! ```
//!
//! It reads what the last run of the suite wrote (`target/suite/results.json`) or the file that is named, and writes
//! `docs/charts/*.svg`. A chart whose workload is not in the results is skipped with a note, and its file left as it is.
//! The same results make the same bytes.
//!
//! # Why not a chart library
//! plotters was tried. It writes each colour into each shape, so that a picture cannot follow the reader's dark mode; it has
//! no grouped bars; and it places everything on whole pixels. What is left to do by hand is a scale and a loop over
//! rectangles. The `svg` crate, which needs no other, writes the document: it escapes what is to be escaped and sorts the
//! attributes, which keeps the output stable.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it says what it wrote")]

mod bars;
mod card;
mod charts;
mod conditions;
mod curves;
mod draw;
mod figures;
mod looks;
mod scale;
mod source;
mod tables;
mod theme;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use waterwheel_suite::{Results, default_path};

fn main() -> ExitCode {
    let path = env::args().nth(1).map_or_else(default_path, PathBuf::from);
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
            Ok(chart) => {
                let conditions = conditions::line(&results.conditions, &chart.source);
                let alert = conditions::alert(&results.conditions);
                let card = card::frame(chart, &conditions, alert);
                fs::write(folder.join(&file), format!("{card}\n"))?;
                println!("docs/charts/{file}");
            }
            Err(missing) => eprintln!("charts: {file} skipped: {missing}"),
        }
    }
    Ok(())
}
