//! Where is the disk that becomes full?

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::fs::statvfs;
use tempfile::TempDir;

use crate::report;
use crate::script::Foreign;

/// How many MiB the small file system has, and the disk in memory.
const SIZE: usize = 48;
/// More is not filled: it is no small file system, and others need it.
const LARGEST: u64 = 2 << 30;

#[derive(Debug)]
pub(super) enum Place {
    /// On a real file system. `is_own`: it was mounted for this, and is gone afterwards.
    Folder { path: PathBuf, is_own: bool },
    /// In the child's memory, for this reason.
    Memory(TempDir, &'static str),
}

impl Place {
    pub(super) fn folder(path: &str, is_own: bool) -> Result<Place, String> {
        let path = fs::canonicalize(path).map_err(|error| format!("--folder {path}: {error}"))?;
        if path.join("timers.db").exists() {
            return Err(format!("--folder {}: it has a file", path.display()));
        }
        let system = statvfs(&path).map_err(|error| error.to_string())?;
        if system.f_bavail * system.f_frsize > LARGEST {
            let path = path.display();
            return Err(format!(
                "--folder {path}: more than 2 GiB are free. Mount a small file system there: it is filled"
            ));
        }
        Ok(Place::Folder { path, is_own })
    }

    pub(super) fn memory(why: &'static str) -> Result<Place, String> {
        report::folder().map(|folder| Place::Memory(folder, why))
    }

    /// The folder of the file; of one in memory, what is left of it between two lives.
    pub(super) fn path(&self) -> &Path {
        match self {
            Place::Folder { path, .. } => path,
            Place::Memory(folder, _) => folder.path(),
        }
    }

    /// How many bytes the disk in memory has.
    pub(super) fn capacity(&self) -> usize {
        match self {
            Place::Folder { .. } => 0,
            Place::Memory(..) => SIZE << 20,
        }
    }

    pub(super) fn foreign(&self) -> Foreign {
        match self {
            Place::Folder { path, .. } => Foreign::File(path.join("foreign")),
            Place::Memory(..) => Foreign::InChild,
        }
    }

    /// Copies the file to a folder that is kept.
    pub(super) fn keep(&self, folder: &Path) {
        for name in ["timers.db", "timers.db-wal"] {
            // The WAL may not be there.
            let _ = fs::copy(self.path().join(name), folder.join(name));
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Folder { is_own: true, .. } => write!(f, "on a tmpfs of {SIZE} MiB"),
            Place::Folder { path, .. } => {
                write!(f, "in {}, a real file system", path.display())
            }
            Place::Memory(_, why) => write!(f, "ON A DISK IN MEMORY of {SIZE} MiB: {why}"),
        }
    }
}

/// Runs this command once more, with a small file system of its own. That needs no rights where users may have namespaces. `None` if it is not possible.
pub(super) fn in_a_namespace(words: &[String], seed: u64) -> Result<Option<ExitCode>, String> {
    let folder = report::folder()?;
    let mount = format!("mount -t tmpfs -o size={SIZE}m tmpfs \"$0\"");
    let shell = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.arg(folder.path());
        command
    };
    let probe = shell(&mount).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = shell(&format!("{mount} && exec \"$@\""));
    command.arg(program).arg("disk-full").args(words);
    command
        .args(["--own", "true", "--folder"])
        .arg(folder.path());
    if !words.iter().any(|word| word == "--seed") {
        command.args(["--seed", &seed.to_string()]);
    }
    let status = command.status().map_err(|error| error.to_string())?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(Some(code.map_or(ExitCode::FAILURE, ExitCode::from)))
}
