//! Runs the tests of a crate, within a time limit.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};

use crate::outcome::Outcomes;
use crate::program::{cargo, file, starts};

/// The time limit for building a crate's tests, on a machine that has other work.
const BUILD_PATIENCE: Duration = Duration::from_secs(60 * 60);
/// The time limit for the tests, which includes building documentation tests.
const TEST_PATIENCE: Duration = Duration::from_secs(30 * 60);
/// The interval at which the process is checked.
const LOOK: Duration = Duration::from_millis(50);

/// A crate in its own folder.
pub(crate) struct Tested<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) flags: &'a [&'a str],
    /// The target folder, which is shared since the crates have most dependencies in common.
    pub(crate) target: &'a Path,
    /// Whether tests that have run for this long hang, given the file with their output. Always [`is_hung`], except in tests.
    pub(crate) is_hung: fn(Duration, &Path) -> bool,
}

/// Whether tests that have run for this long hang.
pub(crate) fn is_hung(elapsed: Duration, _log: &Path) -> bool {
    elapsed > TEST_PATIENCE
}

impl Tested<'_> {
    /// Runs all tests. Their output is kept next to the folder. If a program hangs, it is killed, and no other is run.
    pub(crate) fn run(&self) -> anyhow::Result<Outcomes> {
        let log = self.folder.with_extension("build.log");
        let is_late = |elapsed| elapsed > BUILD_PATIENCE;
        match run(self.cargo_test().arg("--no-run"), &log, is_late)? {
            Some(status) if status.success() => {}
            Some(_) => bail!(
                "its tests do not compile, see {}. If this is before the switch, look at its flags in \
                 `testing/waterwheel-ports/src/crates.rs`; if after, it is a difference to report",
                log.display()
            ),
            None => return Err(late(&log)),
        }
        let log = self.log();
        let is_hung = |elapsed| (self.is_hung)(elapsed, &log);
        let ended = run(&mut self.cargo_test(), &log, is_hung)?;
        let report = fs::read_to_string(&log).map_err(file(&log))?;
        // A failing test makes this no success, but the report has it.
        let outcomes = match ended {
            Some(_) => Outcomes::read(&report).map(Some),
            None => Outcomes::read_hung(&report),
        };
        match outcomes {
            Ok(Some(outcomes)) => Ok(outcomes),
            Ok(None) => Err(late(&log)),
            Err(why) => bail!("{}: {why}", log.display()),
        }
    }

    /// The file with the output of all tests.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.with_extension("log")
    }

    /// Runs one test alone, by its name in [`Outcomes`]. Returns whether it passes; it does not if it hangs.
    pub(crate) fn passes_alone(&self, name: &str) -> anyhow::Result<bool> {
        let log = self.folder.with_extension("alone.log");
        let test = filter(name);
        let is_hung = |elapsed| (self.is_hung)(elapsed, &log);
        let mut command = self.cargo_test();
        if run(command.args(["--", "--exact", test]), &log, is_hung)?.is_none() {
            return Ok(false);
        }
        let report = fs::read_to_string(&log).map_err(file(&log))?;
        // No test ran: the whole program would be aborted, or the test does not exist.
        Ok(Outcomes::read(&report).is_ok_and(|outcomes| outcomes.passed.contains(name)))
    }

    fn cargo_test(&self) -> Command {
        let mut command = cargo();
        command
            .current_dir(self.folder)
            .args(["test", "--no-fail-fast"])
            .args(self.flags)
            .env("CARGO_TARGET_DIR", self.target)
            .env("CARGO_TERM_COLOR", "never")
            // Saves a third of the time and of the space.
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            // These flags belong to the workspace of this program.
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS")
            .env_remove("RUSTDOCFLAGS");
        command
    }
}

/// The error that building a crate, or cargo before the first test program, took too long.
fn late(log: &Path) -> anyhow::Error {
    anyhow!(
        "no end in the time that `testing/waterwheel-ports/src/run.rs` gives it, see {}",
        log.display()
    )
}

/// The test harness's name of a test: without its program, and without its outcome.
fn filter(name: &str) -> &str {
    let (_, test) = name.split_once(": ").unwrap_or(("", name));
    let said = [" - should panic", " - compile fail", " - compile"];
    let mut said = said.into_iter().filter_map(|said| test.strip_suffix(said));
    said.next().unwrap_or(test)
}

/// Runs a command until it ends, or until `is_late` says so, given the elapsed time: then it is killed, and has no status. The
/// log gets its output in order.
fn run(
    command: &mut Command,
    log: &Path,
    is_late: impl Fn(Duration) -> bool,
) -> anyhow::Result<Option<ExitStatus>> {
    let printed = File::create(log).map_err(file(log))?;
    let errors = printed.try_clone().map_err(file(log))?;
    let program = "cargo test";
    let mut child = command
        .stdin(Stdio::null())
        .stdout(printed)
        .stderr(errors)
        // Lets the tests be killed with cargo.
        .process_group(0)
        .spawn()
        .map_err(starts(program))?;
    let start = Instant::now();
    loop {
        let status = child.try_wait();
        if let Some(status) = status.map_err(starts(program))? {
            return Ok(Some(status));
        }
        if is_late(start.elapsed()) {
            kill(&mut child);
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

/// Kills a process and those that it started.
fn kill(child: &mut Child) {
    // Use the shell's builtin `kill`: not every system has a program of that name.
    let mut shell = Command::new("sh");
    let _ = shell
        .args(["-c", &format!("kill -9 -{}", child.id())])
        .status();
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    #[test]
    fn a_test_is_filtered_by_the_name_that_the_harness_has() {
        assert_eq!(filter("src/lib.rs: retry::ok"), "retry::ok");
        assert_eq!(filter("a: b - should panic"), "b");
        let doc = "doc: src/lib.rs - time (line 7) - compile fail";
        assert_eq!(filter(doc), "src/lib.rs - time (line 7)");
    }

    #[test]
    fn what_takes_too_long_is_ended_with_all_it_started() {
        let log = env::temp_dir().join(format!("ports-run-{}", std::process::id()));
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600 & echo $!; sleep 600"]);
        let has_started = |_| fs::read_to_string(&log).is_ok_and(|it| it.ends_with('\n'));
        let status = run(&mut shell, &log, has_started).unwrap();
        let started = fs::read_to_string(&log).unwrap();
        fs::remove_file(&log).unwrap();
        assert!(status.is_none(), "{status:?}");
        // The signal takes a moment.
        let start = Instant::now();
        while is_running(started.trim()) {
            assert!(start.elapsed() < Duration::from_secs(20), "{started}");
            thread::sleep(LOOK);
        }
    }

    fn is_running(process: &str) -> bool {
        let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else {
            return false;
        };
        // The state follows the name, which is in parentheses.
        let state = stat.rsplit(") ").next().unwrap_or_default();
        // A process that has ended stays in the list until its parent has waited for it.
        !state.starts_with('Z')
    }
}
