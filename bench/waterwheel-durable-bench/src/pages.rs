//! Writes the figures of a run into the page and the charts, so that none is copied by hand.

use std::fs;
use std::path::{Path, PathBuf};

use waterwheel_bench_kit::filled;

use crate::place::Failure;
use crate::results::Results;
use crate::{blocks, charts};

fn durable() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/waterwheel-durable")
}

/// The file of the last whole run.
pub(crate) fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("results.json")
}

pub(crate) fn write(results: &Results) -> Result<(), Failure> {
    for (path, text) in texts(results)? {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text)?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Returns each file with its text for these results.
fn texts(results: &Results) -> Result<Vec<(PathBuf, String)>, Failure> {
    let path = durable().join("BENCHMARKS.md");
    let before = fs::read_to_string(&path)?;
    let after = filled(&before, |name| {
        let block = blocks::ALL.iter().find(|(its, _)| *its == name);
        let (_, make) = block.ok_or_else(|| format!("there is no block {name:?}"))?;
        Ok(make(results))
    })?;
    let mut texts = vec![(path, after)];
    for (name, chart) in charts::ALL {
        if let Some(chart) = chart(results) {
            let path = durable().join("charts").join(format!("{name}.svg"));
            texts.push((path, charts::framed(chart, results)));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_the_committed_results() {
        let last = Results::read(&results()).unwrap();
        for (path, text) in texts(&last).unwrap() {
            let committed = fs::read_to_string(&path).unwrap();
            let path = path.display();
            assert!(
                text == committed,
                "{path} has other figures: run the benchmark with `--pages`"
            );
        }
    }
}
