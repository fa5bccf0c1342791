//! Builds the programs that workloads start.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use waterwheel_suite::build_dir;

/// Calls `cargo build` with these arguments, in a target folder of this name: in one folder, builds with other features
/// would throw each other's away.
pub(crate) fn build(folder: &str, arguments: &[&str]) -> Result<(), String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let status = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--locked"])
        .args(arguments)
        .arg("--target-dir")
        .arg(build_dir().join(folder))
        .status()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if !status.success() {
        return Err(format!("the build of {folder} failed ({status})"));
    }
    Ok(())
}

/// Where a program of that folder is.
pub(crate) fn built(folder: &str, program: impl AsRef<Path>) -> PathBuf {
    build_dir()
        .join(folder)
        .join(program)
        .with_extension(env::consts::EXE_EXTENSION)
}
