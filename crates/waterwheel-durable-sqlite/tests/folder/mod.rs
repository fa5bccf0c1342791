//! A folder of a test, deleted as the test ends.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let process = std::process::id();
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = root.join(format!("{name}-{process}"));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _: std::io::Result<()> = fs::remove_dir_all(&self.0);
    }
}
