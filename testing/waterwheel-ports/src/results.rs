//! The file of results.

use std::fs;
use std::path::Path;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};

use crate::outcome::Outcomes;
use crate::program::file;

/// A crate that was switched, and its tests before and after.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The day of the run.
    pub(crate) date: String,
    /// The version of tokio that both were built with.
    pub(crate) tokio: String,
    pub(crate) rustc: String,
    /// Lines that the README's command changed.
    pub(crate) lines: usize,
    /// Imports of `tokio::{…}` that were split.
    pub(crate) imports: usize,
    #[serde(flatten)]
    pub(crate) compared: Compared,
}

/// The tests of a crate, before it was switched and after.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Compared {
    pub(crate) before: Outcomes,
    pub(crate) after: Outcomes,
    /// The tests that passed before but not after, with their repetitions.
    pub(crate) again: Vec<Again>,
}

/// A test that was repeated alone, equally often before and after the switch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Again {
    pub(crate) test: String,
    pub(crate) runs: usize,
    /// The number of times that it passed before.
    pub(crate) before: usize,
    pub(crate) after: usize,
}

impl Compared {
    /// Whether each test that passed before passes after, none is missing, and no program hung.
    pub(crate) fn is_as_before(&self) -> bool {
        self.after.hung.is_none() && self.lost().next().is_none() && self.missing().next().is_none()
    }

    /// Tests that passed before but not after: they failed, were ignored or are missing.
    pub(crate) fn lost(&self) -> impl Iterator<Item = &String> {
        let passed = self.before.passed.difference(&self.after.passed);
        passed.filter(|test| !self.is_unended(test))
    }

    /// Tests that were ignored before, and are missing after.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &String> {
        let ignored = self.before.ignored.iter();
        ignored.filter(|test| !self.after.has(test) && !self.is_unended(test))
    }

    /// Tests that passed before, and have no outcome after because a program hung.
    pub(crate) fn unended(&self) -> impl Iterator<Item = &String> {
        let passed = self.before.passed.iter();
        passed.filter(|test| self.is_unended(test))
    }

    /// Whether a program hung before the test could end or begin.
    fn is_unended(&self, test: &str) -> bool {
        self.after.hung.is_some() && !self.after.has(test)
    }
}

/// Reads the file. A missing file means no results.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<Port>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read(path).map_err(file(path))?;
    serde_json::from_slice(&text).map_err(|error| {
        anyhow!(
            "{}: {error}. Delete the file and run all crates",
            path.display()
        )
    })
}

/// Writes the file, one line per test.
pub(crate) fn write(path: &Path, ports: &[Port]) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(ports)?;
    fs::write(path, text + "\n").map_err(file(path))
}
