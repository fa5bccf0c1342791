//! Two copies of a crate: one as it is, one that is to be switched.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::program::{cargo, file, output};

/// The copies of a crate, and what both are built with.
pub(crate) struct Copies {
    pub(crate) before: PathBuf,
    pub(crate) after: PathBuf,
    /// The version of tokio.
    pub(crate) tokio: String,
}

/// Copies a crate to `before` and `after` in a folder, and has the latter depend on waterwheel.
pub(crate) fn copies(source: &Path, folder: &Path, waterwheel: &Path) -> anyhow::Result<Copies> {
    let before = folder.join("before");
    let after = folder.join("after");
    // A package on its own, wherever the target folder is.
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
    // Not the versions of the crate's own lock file, which may be older than waterwheel's lowest. And the same ones for both.
    let lock = after.join("Cargo.lock");
    if lock.exists() {
        fs::remove_file(&lock).map_err(file(&lock))?;
    }
    let mut command = cargo();
    command.args(["generate-lockfile", "--quiet"]);
    output("cargo generate-lockfile", command.current_dir(&after))?;
    fs::copy(&lock, before.join("Cargo.lock")).map_err(file(&lock))?;
    let lock = fs::read_to_string(&lock).map_err(file(&lock))?;
    Ok(Copies {
        before,
        after,
        tokio: version_of("tokio", &lock).to_owned(),
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

/// Of a package, by a lock file. Empty if it has none.
fn version_of<'a>(name: &str, lock: &'a str) -> &'a str {
    let begins = format!("name = \"{name}\"\nversion = \"");
    let version = lock.split_once(&begins).map(|(_, rest)| rest);
    let version = version.and_then(|rest| rest.split_once('"'));
    version.map_or("", |(version, _)| version)
}

#[cfg(test)]
mod tests {
    use super::version_of;

    #[test]
    fn a_version_is_read_from_a_lock_file() {
        let lock = "\
[[package]]
name = \"tokio-util\"
version = \"0.7.20\"

[[package]]
name = \"tokio\"
version = \"1.54.1\"
";
        assert_eq!(version_of("tokio", lock), "1.54.1");
        assert_eq!(version_of("slab", lock), "");
    }
}
