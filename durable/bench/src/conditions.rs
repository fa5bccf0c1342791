//! Where and how a run is made.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};

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
    let version = |package: &str| (package.to_owned(), locked(package));
    Conditions {
        date: said("date", &["-u", "+%Y-%m-%d"]),
        commit: said("git", &["describe", "--always", "--dirty"]),
        versions: ["waterwheel-durable", "rusqlite", "libsqlite3-sys", "tokio"]
            .map(version)
            .into(),
        rustc: said("rustc", &["--version"]),
        system: said("uname", &["-sr"]),
        processor: processor(),
        cores: available_parallelism().map_or(0, usize::from),
        file_system: file_system(&flags.folder),
        workers: WORKERS,
        payload: PAYLOAD,
        pending: flags.pending,
        rounds: flags.rounds,
        quick: flags.quick,
        load: load(),
    }
}

impl Conditions {
    /// In a sentence.
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

/// The version that Cargo.lock has of a package.
fn locked(package: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock");
    let lock = fs::read_to_string(path).unwrap_or_default();
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    let version = lines
        .nth(1)
        .and_then(|line| line.strip_prefix("version = "));
    version
        .map_or("of unknown version", |version| version.trim_matches('"'))
        .to_owned()
}

fn said(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_else(|| format!("unknown ({program} does not say)"))
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut lines = info.lines();
    let name = lines.find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or("unknown processor".to_owned(), |(_, name)| name.to_owned())
}

/// The kind of the file system that the folder is on: the longest mount point that it lies below.
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

fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or("unknown").to_owned()
}
