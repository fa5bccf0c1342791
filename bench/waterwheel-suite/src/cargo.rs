//! Builds the programs that workloads start, and the suite with tokio's alternative timer.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use waterwheel_suite::build_dir;

/// Runs `cargo build` with these arguments, in a target folder of this name: in one folder, builds with other features would
/// discard each other's results.
pub(crate) fn build(folder: &str, arguments: &[&str]) -> Result<(), String> {
    output(&mut command(folder, arguments)).map(drop)
}

pub(crate) fn command(folder: &str, arguments: &[&str]) -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--locked"])
        .args(arguments)
        .arg("--target-dir")
        .arg(build_dir().join(folder));
    command
}

/// Returns the standard output of a command, if it succeeds. Its errors go to standard error.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.stderr(Stdio::inherit()).output();
    let Output { status, stdout, .. } =
        output.map_err(|error| format!("cargo does not start: {error}"))?;
    if !status.success() {
        return Err(format!("a build failed, see standard error ({status})"));
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// The path of a program in that folder.
pub(crate) fn built(folder: &str, program: impl AsRef<Path>) -> PathBuf {
    let program = build_dir().join(folder).join(program);
    program.with_extension(env::consts::EXE_EXTENSION)
}
