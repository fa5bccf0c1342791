//! No link of a page leads nowhere, in the repository or in the documentation.

mod documentation;
mod markdown;
mod repository;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below a folder with this extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    const LEFT_OUT: [&str; 3] = ["target", ".git", "corpus"];
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).expect("a folder of this repository");
    for path in entries.map(|entry| entry.expect("an entry of it").path()) {
        let is_left_out = path
            .file_name()
            .is_some_and(|name| LEFT_OUT.iter().any(|out| name == *out));
        if path.is_dir() && !is_left_out {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
