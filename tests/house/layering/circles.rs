//! The import cycles of every crate of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use super::imports::{Sources, circles};

/// The folders below this one that have a manifest and sources.
fn packages(folder: &Path, found: &mut Vec<PathBuf>) {
    if folder.join("Cargo.toml").is_file() && folder.join("src").is_dir() {
        found.push(folder.to_owned());
    }
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !name.starts_with('.') && !["target", "src", "tests"].contains(&name) {
            packages(&path, found);
        }
    }
}

#[test]
fn circles_of_every_crate_have_at_most_two_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    packages(root, &mut found);
    found.sort();
    assert!(found.len() > 10, "{found:?}");
    let mut too_large = Vec::new();
    for package in found {
        let name = package.strip_prefix(root).unwrap().to_str().unwrap();
        let imports = Sources::read(&package.join("src")).imports();
        let largest = circles(&imports).into_iter().max_by_key(|it| it.len());
        let largest: Vec<&str> = largest.into_iter().flatten().collect();
        // `ci/size` reads this line.
        println!("circle {name:<30} {} {}", largest.len(), largest.join(" "));
        if largest.len() > 2 {
            too_large.push(format!("{name}: {}", largest.join(", ")));
        }
    }
    assert!(
        too_large.is_empty(),
        "{}
Move what the files share into a file below them.",
        too_large.join(
            "
"
        )
    );
}
