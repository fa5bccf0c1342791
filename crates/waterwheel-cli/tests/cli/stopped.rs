//! If the process that has the file open is stopped, the command names it.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rusqlite::Connection;
use waterwheel_durable_sqlite::SqliteStore;

use crate::support::*;

const HOLDS: &str = "WATERWHEEL_HOLDS";
const READY: &str = "it is ready";

/// A process that is killed when the test ends.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _: std::io::Result<()> = self.0.kill();
        let _: std::io::Result<_> = self.0.wait();
    }
}

impl Other {
    /// Runs a test of this file in a separate process, until it is ready.
    fn start(test: &str, file: &Path) -> Other {
        let mut other = Command::new(std::env::current_exe().unwrap());
        other.args(["--exact", "--nocapture", &format!("stopped::{test}")]);
        other.env(HOLDS, file);
        other.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut other = Other(other.spawn().unwrap());
        let mut lines = BufReader::new(other.0.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == READY));
        other
    }

    fn signal(&self, name: &str) {
        let process = self.0.id().to_string();
        let sent = Command::new("kill").args([name, &process]).status();
        assert!(sent.unwrap().success());
    }
}

/// Reports that this process is ready, and waits until its input ends.
fn wait_for_the_end() {
    println!("\n{READY}");
    std::io::stdin().lines().for_each(drop);
}

#[test]
fn a_stopped_process_is_named_by_each_command() {
    if let Some(path) = std::env::var_os(HOLDS) {
        // The other process: it has the file open, and is in the middle of a commit.
        let _store = SqliteStore::open(&path).unwrap();
        let writes = Connection::open(&path).unwrap();
        writes.execute_batch("BEGIN IMMEDIATE").unwrap();
        wait_for_the_end();
        return;
    }
    let file = TimersFile::filled();
    let other = Other::start("a_stopped_process_is_named_by_each_command", &file);
    let process = other.0.id();
    let commands = ["pause shop", "cancel --handler mail", "redrive 10000000064"];
    for line in commands {
        let said = file.failure(format!("{line} --wait 0.1"));
        let is_named = said.contains(&format!("process {process} "));
        assert!(is_named && !said.contains("stopped"), "{line}: {said}");
    }
    other.signal("-STOP");
    let stopped = format!("process {process}, which is stopped");
    for line in commands {
        let said = file.failure(format!("{line} --wait 0.1"));
        let has_cure = said.contains(&format!("kill -CONT {process}"));
        assert!(has_cure && said.contains(&stopped), "{line}: {said}");
    }
    // Commands that only read still work.
    let said = file.well("stats");
    assert!(said.contains(&stopped), "{said}");
    other.signal("-CONT");
}

#[test]
fn a_command_to_a_stopped_process_is_withdrawn_and_says_so() {
    if let Some(path) = std::env::var_os(HOLDS) {
        let _store = SqliteStore::open(&path).unwrap();
        wait_for_the_end();
        return;
    }
    let file = TimersFile::filled();
    let other = Other::start(
        "a_command_to_a_stopped_process_is_withdrawn_and_says_so",
        &file,
    );
    let process = other.0.id();
    other.signal("-STOP");
    let said = file.failure("pause shop --wait 0.1");
    let holds = format!(
        "process {process}, which is stopped (`kill -CONT {process}` resumes it), has the file open"
    );
    assert!(said.contains(&holds), "{said}");
    assert!(said.contains("will not be applied"), "{said}");
}
