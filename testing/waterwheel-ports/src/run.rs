//! Runs the tests of a crate, within a time.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};

use crate::outcome::Outcomes;
use crate::program::{cargo, file, starts};

/// For the build of a crate's tests, on a machine that has other work.
const BUILD_PATIENCE: Duration = Duration::from_secs(60 * 60);
/// For its tests. Documentation tests are built then.
const TEST_PATIENCE: Duration = Duration::from_secs(30 * 60);
/// From one look at the process to the next.
const LOOK: Duration = Duration::from_millis(50);

/// A crate in a folder of its own.
pub(crate) struct Tested<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) flags: &'a [&'a str],
    /// Shared by all crates, which have most dependencies in common.
    pub(crate) target: &'a Path,
    /// Whether tests hang that have run for this long, by what they have printed to this file. [`is_hung`], but for tests.
    pub(crate) is_hung: fn(Duration, &Path) -> bool,
}

/// Whether tests that have run for this long hang.
pub(crate) fn is_hung(elapsed: Duration, _log: &Path) -> bool {
    elapsed > TEST_PATIENCE
}

impl Tested<'_> {
    /// Runs all tests. What they print is kept beside the folder. A program that hangs is ended, and no other is run then.
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
        // Not a success if a test fails, which the report has.
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

    /// Runs one test alone, given the name that it has in [`Outcomes`]. Whether it passes, which it does not if it hangs.
    pub(crate) fn passes_alone(&self, name: &str) -> anyhow::Result<bool> {
        let log = self.folder.with_extension("alone.log");
        let test = filter(name);
        let is_hung = |elapsed| (self.is_hung)(elapsed, &log);
        let mut command = self.cargo_test();
        if run(command.args(["--", "--exact", test]), &log, is_hung)?.is_none() {
            return Ok(false);
        }
        let report = fs::read_to_string(&log).map_err(file(&log))?;
        // No test ran: the whole program was to be aborted, or there is no such test.
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
            // A third of the time and of the space.
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            // Not those of the workspace that this program was built in.
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS")
            .env_remove("RUSTDOCFLAGS");
        command
    }
}

/// The build of a crate, or cargo before the first test program, took longer than it may.
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

/// Runs a command to its end, or until it is late, given for how long it has run: it is ended then, and has no status. What it
/// prints goes to the log in the order in which it comes.
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
        // So that the tests end with cargo.
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

/// Ends a process and those that it started.
fn kill(child: &mut Child) {
    // The shell's own `kill`: not every system has a program of that name.
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
        // After the name, which is in brackets.
        let state = stat.rsplit(") ").next().unwrap_or_default();
        // A process that has ended stays in the list until its parent has looked.
        !state.starts_with('Z')
    }
}
