//! Beside a process that is stopped, the command says which one that is.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rusqlite::Connection;
use waterwheel_durable_sqlite::SqliteStore;

use crate::support::{Folder, cli, filled, words};

const HOLDS: &str = "WATERWHEEL_HOLDS";

/// A process that is killed as the test ends.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _: std::io::Result<()> = self.0.kill();
        let _: std::io::Result<_> = self.0.wait();
    }
}

impl Other {
    /// Runs this test in a process of its own, until it has printed that it is ready.
    fn start(test: &str, file: &Path, ready: &str) -> Other {
        let mut other = Command::new(std::env::current_exe().unwrap());
        other.args(["--exact", "--nocapture", test]);
        other.env(HOLDS, file);
        other.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut other = Other(other.spawn().unwrap());
        let mut lines = BufReader::new(other.0.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == ready));
        other
    }
}

#[test]
fn a_stopped_process_is_named_by_each_command() {
    if let Some(path) = std::env::var_os(HOLDS) {
        // The other process: it has the file, and is in the middle of a commit.
        let _store = SqliteStore::open(&path).unwrap();
        let writes = Connection::open(&path).unwrap();
        writes.execute_batch("BEGIN IMMEDIATE").unwrap();
        println!("\nit writes");
        std::io::stdin().lines().for_each(drop);
        return;
    }
    let folder = Folder::new();
    let file = folder.file("timers.db");
    filled(&file);
    let other = Other::start(
        "stopped::a_stopped_process_is_named_by_each_command",
        &file,
        "it writes",
    );
    let process = other.0.id();
    let signal = |name: &str| {
        let sent = Command::new("kill")
            .args([name, &process.to_string()])
            .status();
        assert!(sent.unwrap().success());
    };
    let stopped = format!("process {process}, which is stopped");
    let commands = ["pause shop", "cancel --handler mail", "redrive 10000000064"];
    for line in commands {
        let said = cli(&file, words(&format!("{line} --wait 0.1"))).failure();
        assert!(
            said.contains(&format!("process {process} ")),
            "{line}: {said}"
        );
        assert!(!said.contains("stopped"), "{line}: {said}");
    }
    signal("-STOP");
    for line in commands {
        let said = cli(&file, words(&format!("{line} --wait 0.1"))).failure();
        assert!(said.contains(&stopped), "{line}: {said}");
        assert!(
            said.contains(&format!("kill -CONT {process}")),
            "{line}: {said}"
        );
    }
    // Commands that only read still work.
    let said = cli(&file, ["stats"]).well();
    assert!(said.contains(&stopped), "{said}");
    signal("-CONT");
}

#[test]
fn a_command_to_a_stopped_process_is_withdrawn_and_says_so() {
    if let Some(path) = std::env::var_os(HOLDS) {
        let _store = SqliteStore::open(&path).unwrap();
        println!("\nit is open");
        std::io::stdin().lines().for_each(drop);
        return;
    }
    let folder = Folder::new();
    let file = folder.file("timers.db");
    filled(&file);
    let other = Other::start(
        "stopped::a_command_to_a_stopped_process_is_withdrawn_and_says_so",
        &file,
        "it is open",
    );
    let process = other.0.id().to_string();
    let stop = Command::new("kill").args(["-STOP", &process]).status();
    assert!(stop.unwrap().success());
    let said = cli(&file, words("pause shop --wait 0.1")).failure();
    let words = [
        &*format!(
            "process {process}, which is stopped (`kill -CONT {process}` resumes it), has the file open"
        ),
        "will not be applied",
    ];
    assert!(words.iter().all(|it| said.contains(it)), "{said}");
}
