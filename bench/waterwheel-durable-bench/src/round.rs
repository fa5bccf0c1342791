//! Plays each round in its own process, so that its memory, CPU time and writes can be told apart.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use waterwheel_bench_kit::output;

use crate::flags::Flags;
use crate::sample::Sample;

/// After this time a round counts as failed: a timer was lost.
const PATIENCE: Duration = Duration::from_secs(900);
const QUICK_PATIENCE: Duration = Duration::from_secs(60);

/// Plays a round of this row in this folder, with the timers in a database if it has a URL.
pub(crate) fn play(
    flags: &Flags,
    row: &str,
    folder: &Path,
    url: Option<&str>,
) -> Result<Sample, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    if let Some(url) = url {
        command.args(["--url", url]);
    }
    run(flags, &mut command, row, folder)
}

/// Plays a round under `strace`, which counts the syncs. `Ok(None)` if `strace` is missing or may not trace.
pub(crate) fn play_traced(
    flags: &Flags,
    row: &str,
    folder: &Path,
) -> Result<Option<Sample>, String> {
    let counts = folder.with_extension("strace");
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let traces = |command: &mut Command| {
        command.args(["-f", "-c", "-e", "trace=fsync,fdatasync", "-o"]);
        command.arg(&counts);
    };
    let mut attempt = Command::new("strace");
    traces(&mut attempt);
    let attempt = attempt.arg("true").stderr(Stdio::null()).status();
    if !attempt.is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let mut command = Command::new("strace");
    traces(&mut command);
    command.arg(program);
    let mut sample = run(flags, &mut command, row, folder)?;
    let text = std::fs::read_to_string(&counts).map_err(|error| error.to_string())?;
    let _ = std::fs::remove_file(&counts);
    let syncs: f64 = text.lines().filter_map(syncs_in).sum();
    let commits = sample.value("commits").unwrap_or(f64::NAN);
    sample.set("syncs", syncs);
    sample.set("commits without a sync", (commits - syncs).max(0.0));
    Ok(Some(sample))
}

/// Parses the calls in a line of strace's table: `% time, seconds, usecs/call, calls, (errors), syscall`.
fn syncs_in(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_sync = matches!(words.last(), Some(&("fsync" | "fdatasync")));
    is_sync.then(|| words.get(3)?.parse().ok()).flatten()
}

fn run(flags: &Flags, command: &mut Command, row: &str, folder: &Path) -> Result<Sample, String> {
    command.args(flags.quick.then_some("--quick"));
    command.args([
        "--sample",
        row,
        "--pending",
        &flags.pending().to_string(),
        "--folder",
    ]);
    command.arg(folder);
    let patience = if flags.quick {
        QUICK_PATIENCE
    } else {
        PATIENCE
    };
    let text = output(command, patience)?;
    serde_json::from_str(&text).map_err(|error| format!("no sample: {error}"))
}

#[cfg(test)]
mod tests {
    use super::syncs_in;

    #[test]
    fn the_syncs_are_read_from_the_table_of_strace() {
        let lines = [
            "% time     seconds  usecs/call     calls    errors syscall",
            "------ ----------- ----------- --------- --------- ----------------",
            " 65.10    0.012328         100       123           fsync",
            " 34.90    0.007414          80        92         1 fdatasync",
            "100.00    0.019742          91       215         1 total",
        ];
        let syncs: Vec<_> = lines.into_iter().map(syncs_in).collect();
        assert_eq!(syncs, [None, None, Some(123.0), Some(92.0), None]);
    }
}
