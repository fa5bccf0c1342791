//! Makes two copies of a crate: an unchanged one, and one to be switched.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use waterwheel_bench_kit::machine;

use crate::program::{cargo, file, output};

/// The copies of a crate, and the version of tokio that both are built with.
pub(crate) struct Copies {
    pub(crate) before: PathBuf,
    pub(crate) after: PathBuf,
    /// The version of tokio.
    pub(crate) tokio: String,
}

/// Copies a crate to `before` and `after` in a folder, and makes the latter depend on waterwheel.
pub(crate) fn copies(source: &Path, folder: &Path, waterwheel: &Path) -> anyhow::Result<Copies> {
    let before = folder.join("before");
    let after = folder.join("after");
    // Make it a separate package, wherever the target folder is.
    let alone = "\n[workspace]\n";
    let switched = format!(
        "{alone}\n[dependencies.waterwheel]\npath = {:?}\nfeatures = [\"test-util\"]\n",
        waterwheel.display().to_string()
    );
    for (copy, addition) in [(&after, &*switched), (&before, alone)] {
        if copy.exists() {
            fs::remove_dir_all(copy).map_err(file(copy))?;
        }
        copy_folder(source, copy)?;
        let manifest = copy.join("Cargo.toml");
        let mut appended = OpenOptions::new()
            .append(true)
            .open(&manifest)
            .map_err(file(&manifest))?;
        appended
            .write_all(addition.as_bytes())
            .map_err(file(&manifest))?;
    }
    // Do not use the versions of the crate's own lock file, which may be older than waterwheel's lowest. Both copies use the same ones.
    let lock = after.join("Cargo.lock");
    if lock.exists() {
        fs::remove_file(&lock).map_err(file(&lock))?;
    }
    let mut command = cargo();
    command.args(["generate-lockfile", "--quiet"]);
    output("cargo generate-lockfile", command.current_dir(&after))?;
    fs::copy(&lock, before.join("Cargo.lock")).map_err(file(&lock))?;
    Ok(Copies {
        before,
        after,
        tokio: machine::locked(&lock, "tokio"),
    })
}

fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).map_err(file(to))?;
    for entry in fs::read_dir(from).map_err(file(from))? {
        let path = entry.map_err(file(from))?.path();
        let copy = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_folder(&path, &copy)?;
        } else {
            fs::copy(&path, &copy).map_err(file(&path))?;
        }
    }
    Ok(())
}
