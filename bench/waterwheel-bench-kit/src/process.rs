//! Programs that each take a sample, and the exit code of this one.

use std::io::{self, Read};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Returns the standard output of a program, which is killed if it takes too long.
///
/// # Errors
/// If it does not start, does not end in time, or fails.
pub fn output(command: &mut Command, patience: Duration) -> Result<String, String> {
    let child = command.stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("its process does not start: {error}"))?;
    let mut output = child.stdout.take().ok_or("its output is not piped")?;
    let (sender, receiver) = mpsc::channel();
    // A blocking thread: polling would take CPU time from the measurement.
    let reader = thread::spawn(move || {
        let mut text = String::new();
        let _ = output.read_to_string(&mut text);
        let _ = sender.send(text);
    });
    let text = receiver.recv_timeout(patience);
    if text.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let _ = reader.join();
    let text = text.map_err(|_| format!("it did not end within {patience:?}"))?;
    if !status.success() {
        let failure = format!("its process failed: {status}\n{text}");
        return Err(failure.trim_end().to_owned());
    }
    Ok(text)
}

/// Returns 0 if a check has passed, 1 if it has failed or could not be made. The reason goes to standard error.
pub fn exit_code(program: &str, passed: io::Result<bool>) -> ExitCode {
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}
