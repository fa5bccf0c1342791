//! Calls a program for its output.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{anyhow, bail};

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    Command::new(cargo)
}

/// Returns the output of a program, if it succeeded.
pub(crate) fn output(program: &'static str, command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(starts(program))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr)
            .trim_end()
            .to_owned();
        bail!("{program} failed:\n{message}");
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned())
}

/// For `map_err`: the error of a program that does not start.
pub(crate) fn starts(program: &str) -> impl Fn(io::Error) -> anyhow::Error {
    move |error| anyhow!("{program} does not start: {error}. It must be in the PATH")
}

/// For `map_err`: the error of a file or folder.
pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> anyhow::Error {
    let path = path.into();
    move |error| anyhow!("{}: {error}", path.display())
}
