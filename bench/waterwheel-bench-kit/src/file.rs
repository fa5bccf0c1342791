//! The files that a run writes and other programs read.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a file that [`write_json`] wrote.
///
/// # Errors
/// If there is no such file, or it has other contents.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// Replaces the file atomically, so that an interrupted run leaves it whole.
///
/// # Errors
/// If it cannot be written.
pub fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = path.with_extension("json.part");
    fs::write(&draft, serde_json::to_vec(value)?)?;
    fs::rename(draft, path)
}

/// The target folder of cargo that this program was built in. `None` if the program was moved elsewhere.
pub fn target_dir() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let mut folders = program.ancestors();
    let built_in = folders.find(|folder| folder.join("CACHEDIR.TAG").exists());
    built_in.map(Path::to_path_buf)
}
