//! A program that is called for what it prints.

use std::env;
use std::ffi::OsString;
use std::process::{Command, Stdio};

use crate::error::Error;

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    Command::new(cargo)
}

/// What it printed, if it succeeded.
pub(crate) fn output(program: &'static str, command: &mut Command) -> Result<String, Error> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::Start { program, error })?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr)
            .trim_end()
            .to_owned();
        return Err(Error::Failed { program, message });
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned())
}
