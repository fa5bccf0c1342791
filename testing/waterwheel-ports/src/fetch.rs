//! The published sources of the crates: cargo fetches the registry's packages and tells where they are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;

use crate::crates::Published;
use crate::program::{cargo, file, output};

/// The part of `cargo metadata` that this program reads.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    manifest_path: PathBuf,
}

/// The folder of each crate, by name. A package in `scratch` depends on exactly these versions of all of them.
pub(crate) fn sources(
    scratch: &Path,
    crates: &[Published],
) -> anyhow::Result<BTreeMap<&'static str, PathBuf>> {
    let manifest = scratch.join("Cargo.toml");
    fs::create_dir_all(scratch.join("src")).map_err(file(scratch))?;
    fs::write(&manifest, asking_for(crates)).map_err(file(&manifest))?;
    let library = scratch.join("src/lib.rs");
    fs::write(&library, "").map_err(file(&library))?;

    let mut command = cargo();
    command.args(["metadata", "--format-version", "1"]);
    let text = output("cargo metadata", command.current_dir(scratch))?;
    let metadata: Metadata = serde_json::from_str(&text).context("cargo metadata failed")?;
    let mut found = BTreeMap::new();
    for Published { name, version, .. } in crates {
        let mut packages = metadata.packages.iter();
        let package = packages.find(|package| package.name == *name && package.version == *version);
        let folder = package.and_then(|package| package.manifest_path.parent());
        let folder = folder.with_context(|| format!("cargo metadata names no {name} {version}: mend its line in `testing/waterwheel-ports/src/crates.rs`"))?;
        found.insert(*name, folder.to_owned());
    }
    Ok(found)
}

fn asking_for(crates: &[Published]) -> String {
    let mut manifest = "\
[package]
name = \"ports-sources\"
version = \"0.0.0\"
edition = \"2024\"
publish = false

[workspace]

[dependencies]
"
    .to_owned();
    for Published { name, version, .. } in crates {
        manifest += &format!("{name} = \"={version}\"\n");
    }
    manifest
}
