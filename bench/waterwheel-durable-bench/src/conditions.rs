//! Where and how a run is measured.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use waterwheel_bench_kit::machine;

use crate::flags::Flags;
use crate::place::{PAYLOAD, WORKERS};

/// Everything that a figure needs to be understood.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Conditions {
    pub(crate) date: String,
    pub(crate) commit: String,
    /// A package and its version.
    pub(crate) versions: Vec<(String, String)>,
    pub(crate) rustc: String,
    pub(crate) system: String,
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) file_system: String,
    pub(crate) workers: usize,
    pub(crate) payload: usize,
    pub(crate) pending: usize,
    pub(crate) rounds: usize,
    pub(crate) quick: bool,
    pub(crate) load: String,
}

/// Asks the machine, cargo and git.
pub(crate) fn read(flags: &Flags) -> Conditions {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let version = |package: &str| (package.to_owned(), machine::locked(&lock, package));
    Conditions {
        date: machine::date(),
        commit: machine::commit(env!("CARGO_MANIFEST_DIR")),
        versions: ["waterwheel-durable", "rusqlite", "libsqlite3-sys", "tokio"]
            .map(version)
            .into(),
        rustc: machine::rustc(),
        system: machine::system(),
        processor: machine::processor(),
        cores: machine::cores(),
        file_system: file_system(&flags.folder()),
        workers: WORKERS,
        payload: PAYLOAD,
        pending: flags.pending(),
        rounds: flags.rounds(),
        quick: flags.quick,
        load: machine::load(),
    }
}

impl Conditions {
    /// Formats the conditions as a sentence.
    pub(crate) fn line(&self) -> String {
        let versions = self.versions.iter();
        let versions: Vec<_> = versions
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        let rustc = self.rustc.split(" (").next().unwrap_or_default();
        format!(
            "{}, commit `{}`; {}; {rustc}; {}, {} cores, {}, {}; a multi-thread runtime with {} workers; a payload of {} bytes, a handler that does nothing, \
             `synchronous=EXTRA`; load average before the run {}.",
            self.date,
            self.commit,
            versions.join(", "),
            self.processor,
            self.cores,
            self.system,
            self.file_system,
            self.workers,
            self.payload,
            self.load,
        )
    }
}

/// The type of the file system that holds the folder: that of the longest mount point above it.
fn file_system(folder: &Path) -> String {
    let folder = fs::canonicalize(folder).unwrap_or_default();
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (point, kind) = (words.next()?, words.next()?);
        folder
            .starts_with(point)
            .then(|| (point.len(), kind.to_owned()))
    });
    let deepest = mounts.max_by_key(|(length, _)| *length);
    deepest.map_or("unknown file system".to_owned(), |(_, kind)| kind)
}
