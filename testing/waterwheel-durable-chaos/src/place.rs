//! The disk that becomes full, and how it is filled.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::fs::statvfs;
use tempfile::TempDir;

use crate::report::{in_words, temporary_folder};

/// The size of the small file system or of the disk in memory, in MiB.
const SIZE: usize = 48;
/// The most that is filled: a larger file system is not a small one, and others need it.
const LARGEST: u64 = 2 << 30;

#[derive(Debug)]
pub(crate) struct Place {
    /// The folder of the file. For a disk in memory, the folder that keeps its files between two lives.
    pub(crate) path: PathBuf,
    /// The size of the disk in the child's memory, in bytes. If it is 0, the file system is real.
    pub(crate) capacity: usize,
    pub(crate) in_words: String,
    _temporary: Option<TempDir>,
}

impl Place {
    /// A real file system. `is_own`: it was mounted for this run, and is unmounted afterwards.
    pub(crate) fn folder(path: &str, is_own: bool) -> Result<Place, String> {
        let path = fs::canonicalize(path).map_err(|error| format!("--folder {path}: {error}"))?;
        let shown = path.display();
        if path.join("timers.db").exists() {
            return Err(format!("--folder {shown}: it has a file"));
        }
        let system = statvfs(&path).map_err(in_words)?;
        if system.f_bavail * system.f_frsize > LARGEST {
            return Err(format!(
                "--folder {shown}: more than 2 GiB are free. Mount a small file system there: it is filled"
            ));
        }
        let in_words = match is_own {
            true => format!("on a tmpfs of {SIZE} MiB"),
            false => format!("in {shown}, a real file system"),
        };
        Ok(Place {
            path,
            capacity: 0,
            in_words,
            _temporary: None,
        })
    }

    pub(crate) fn memory(why: &str) -> Result<Place, String> {
        let folder = temporary_folder()?;
        Ok(Place {
            path: folder.path().to_owned(),
            capacity: SIZE << 20,
            in_words: format!("ON A DISK IN MEMORY of {SIZE} MiB: {why}"),
            _temporary: Some(folder),
        })
    }

    /// The foreign file that takes up the space. `None` if the child's disk is in its memory.
    pub(crate) fn foreign(&self) -> Option<PathBuf> {
        (self.capacity == 0).then(|| self.path.join("foreign"))
    }

    /// Copies the file to a folder that is kept.
    pub(crate) fn keep(&self, folder: &Path) {
        for name in ["timers.db", "timers.db-wal"] {
            // The WAL may be missing.
            let _ = fs::copy(self.path.join(name), folder.join(name));
        }
    }
}

/// Fills the disk with a foreign file, or deletes it. Returns its length.
pub(crate) fn change(path: &Path, fills: bool) -> std::io::Result<u64> {
    if !fills {
        return fs::remove_file(path).map(|()| 0);
    }
    let mut file = File::create(path)?;
    // Random bytes, which no file system can compress.
    let piece: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..))
        .take(65_536)
        .collect();
    let mut length = 0;
    for size in [65_536, 4_096, 1] {
        loop {
            match file.write(&piece[..size]) {
                Ok(0) => break,
                Ok(written) => length += written as u64,
                Err(error) if is_full(error.kind()) => break,
                Err(error) => return Err(error),
            }
        }
    }
    match file.sync_all() {
        Err(error) if !is_full(error.kind()) => Err(error),
        _ => Ok(length),
    }
}

fn is_full(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Runs this command again, with its own small file system. This needs no privileges where users may create namespaces. `None` if it is not possible.
pub(crate) fn in_a_namespace(seed: u64) -> Result<Option<ExitCode>, String> {
    let place = temporary_folder()?;
    let mount = format!("mount -t tmpfs -o size={SIZE}m tmpfs \"$0\"");
    let shell = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.arg(place.path());
        command
    };
    let probe = shell(&mount).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let program = std::env::current_exe().map_err(in_words)?;
    let mut command = shell(&format!("{mount} && exec \"$@\""));
    command.arg(program).args(&words);
    command
        .args(["--own", "true", "--folder"])
        .arg(place.path());
    if !words.iter().any(|word| word == "--seed") {
        command.args(["--seed", &seed.to_string()]);
    }
    let status = command.status().map_err(in_words)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(Some(code.map_or(ExitCode::FAILURE, ExitCode::from)))
}
