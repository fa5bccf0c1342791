//! The file that a run writes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use waterwheel_bench_kit::{read_json, target_dir, write_json};

use crate::{Table, Verdict};

/// All results of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Results {
    /// Where and how it was measured.
    pub conditions: Conditions,
    /// The tables, in the order of the report.
    pub tables: Vec<Table>,
    /// The verdicts, in the order of the report.
    pub targets: Vec<Verdict>,
}

/// Everything that a figure needs to be understood.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Conditions {
    /// The versions, by package: waterwheel, tokio and the other peers.
    pub versions: BTreeMap<String, String>,
    /// The measured version of waterwheel: the commit, and whether there were uncommitted changes.
    #[serde(default)]
    pub commit: String,
    /// The day of the run.
    #[serde(default)]
    pub date: String,
    /// Why there is no row of tokio's alternative timer; `None` if there is one.
    pub no_alt_timer: Option<String>,
    /// The compiler.
    pub rustc: String,
    /// The kernel.
    #[serde(default)]
    pub system: String,
    /// The processor's model.
    pub processor: String,
    /// Processors that the run may use.
    pub cores: usize,
    /// Worker threads of each runtime.
    pub workers: usize,
    /// The number of operations between two yields.
    pub batch: usize,
    /// The machine's load average of one minute before the run.
    pub load: String,
    /// The number of interleaved rounds that were requested: a table has as many samples of each contestant as it took.
    pub rounds: usize,
    /// Whether the sizes were small and the rounds few, for plausibility only.
    pub quick: bool,
    /// Whether debug assertions were on, which makes all figures meaningless.
    pub debug_assertions: bool,
}

impl Results {
    /// Reads a file that [`write`](Self::write) wrote.
    pub fn read(path: &Path) -> io::Result<Self> {
        read_json(path)
    }

    /// Replaces the file atomically, so that an interrupted run leaves it whole.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_json(path, self)
    }
}

/// Where the suite writes and the charts read by default: `target/suite/results.json`.
pub fn default_path() -> PathBuf {
    build_dir().join("suite").join("results.json")
}

/// The target folder of cargo that this program was built in; the workspace's if it was moved elsewhere.
pub fn build_dir() -> PathBuf {
    target_dir().unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"))
}
