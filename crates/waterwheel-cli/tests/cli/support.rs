//! Runs the command, and creates files for it.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use waterwheel_durable::{Drain, Durable};
use waterwheel_durable_core::store::{Bucket, Due, Id, Level, Op, Outcome, Row, Store};
use waterwheel_durable_sqlite::SqliteStore;

/// The file `timers.db` in a temporary directory.
pub(crate) struct TimersFile {
    folder: TempDir,
    path: PathBuf,
}

impl Deref for TimersFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl TimersFile {
    pub(crate) fn new() -> TimersFile {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("timers.db");
        TimersFile { folder, path }
    }

    pub(crate) fn with(steps: &[Op]) -> TimersFile {
        let file = TimersFile::new();
        drop(store(&file, steps));
        file
    }

    pub(crate) fn filled() -> TimersFile {
        let file = TimersFile::new();
        filled(&file);
        file
    }

    /// Another path in the directory.
    pub(crate) fn sibling(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn cli(&self, line: impl AsRef<str>) -> Said {
        cli(self, line)
    }

    #[track_caller]
    pub(crate) fn well(&self, line: impl AsRef<str>) -> String {
        self.cli(line).well()
    }

    #[track_caller]
    pub(crate) fn json(&self, line: impl AsRef<str>) -> Value {
        self.cli(line).json()
    }

    #[track_caller]
    pub(crate) fn failure(&self, line: impl AsRef<str>) -> String {
        self.cli(line).failure()
    }

    /// Runs the command while a service of this process has the file open.
    pub(crate) fn beside<L: AsRef<str>>(&self, line: L) -> impl Future<Output = Said> + use<L> {
        let (path, line) = (self.path.clone(), line.as_ref().to_owned());
        let ran = tokio::task::spawn_blocking(move || cli(&path, line));
        async { ran.await.unwrap() }
    }

    /// The numbers of pending timers and of dead letters.
    #[track_caller]
    pub(crate) fn counts(&self) -> (u64, u64) {
        let stats = self.json("stats --json");
        let count = |name| stats[name].as_u64().unwrap();
        (count("pending"), count("dead"))
    }
}

/// The output of the command.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Expects success. Returns the output.
    #[track_caller]
    pub(crate) fn well(self) -> String {
        assert_eq!((self.code, &*self.err), (0, ""), "{self:?}");
        self.out
    }

    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.well()).unwrap()
    }

    /// Expects a command that has found nothing to do. Returns its output, one line.
    #[track_caller]
    pub(crate) fn nothing(self) -> String {
        assert_eq!((self.code, &*self.out), (0, ""), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        self.err
    }

    /// Expects a failure. Returns the message, one line.
    #[track_caller]
    pub(crate) fn failure(self) -> String {
        assert_eq!(self.code, 1, "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        self.err
    }
}

pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waterwheel"));
    command.stdin(Stdio::null());
    command
}

/// Runs the command on a file.
pub(crate) fn cli(file: &Path, line: impl AsRef<str>) -> Said {
    let mut command = command();
    command.arg(file).args(words(line.as_ref()));
    run(command)
}

pub(crate) async fn stop(timers: &Durable) {
    let drain = Drain::within(Duration::from_secs(60));
    timers.shutdown(drain).await.unwrap();
}

/// Waits for a future, and fails if it hangs.
#[track_caller]
pub(crate) fn within<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(Duration::from_secs(60), future).await {
            Ok(output) => output,
            Err(_) => panic!("{caller} hangs"),
        }
    }
}

pub(crate) fn run(mut command: Command) -> Said {
    let output = command.output().unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Words of a command line.
pub(crate) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace()
}

pub(crate) const DAY: i64 = 86_400_000;

pub(crate) fn now() -> Due {
    Due::at_or_after(std::time::SystemTime::now()).unwrap()
}

/// The timer with this number, due this many milliseconds from now.
pub(crate) fn row(number: u64, handler: &str, distance: i64) -> Row {
    Row::new(
        Id::new(1, number).unwrap(),
        Due::from_millis(now().as_millis() + distance),
        handler,
        format!("{{\"order\":{number}}}").into_bytes(),
    )
}

/// This many timers of a handler, numbered from 0.
pub(crate) fn rows(count: u64, handler: &str, distance: i64) -> Vec<Row> {
    (0..count).map(|it| row(it, handler, distance)).collect()
}

pub(crate) fn inserts(rows: &[Row]) -> Vec<Op> {
    rows.iter().map(insert).collect()
}

pub(crate) fn insert(row: &Row) -> Op {
    Op::Insert(row.clone(), Bucket::of(row.due, now()))
}

pub(crate) fn set(name: &str, value: &str) -> Op {
    Op::Set(name.into(), Some(value.as_bytes().into()))
}

/// A timer that was given up.
pub(crate) fn dead(row: &Row, error: &str) -> [Op; 2] {
    let near = Level::Second.bucket(row.due);
    let bury = Op::Bury {
        row: row.clone(),
        at: now(),
        error: error.into(),
    };
    [Op::Insert(row.clone(), near), bury]
}

/// Dead letters of `mail`, with numbers from 0.
pub(crate) fn dead_mail(count: u64) -> Vec<Op> {
    let rows = rows(count, "mail", 0);
    rows.iter().flat_map(|it| dead(it, "it said no")).collect()
}

/// A new store that has committed these steps.
pub(crate) fn store(file: &Path, steps: &[Op]) -> SqliteStore {
    let mut store = SqliteStore::open(file).unwrap();
    assert_eq!(store.begin().unwrap(), 1);
    let outcomes = store.commit(1, steps).unwrap();
    assert!(!outcomes.contains(&Outcome::Cancelled(false)));
    store
}

/// The store of an existing file, opened for its next epoch.
pub(crate) fn reopened(file: &Path) -> SqliteStore {
    let mut store = SqliteStore::open(file).unwrap();
    store.begin().unwrap();
    store
}

/// A closed file with namespaces, and with timers of several handlers: near, far, overdue, retried and dead.
pub(crate) fn filled(file: &Path) -> Vec<Row> {
    let mut rows = Vec::new();
    for number in 0..60 {
        let handler = ["mail", "shop/close", "shop/notify"][number as usize % 3];
        let distance = [-5_000, 60_000, 2 * 3_600_000, 3 * DAY, 200 * DAY][number as usize % 5];
        let mut row = row(number, handler, distance + number as i64 * 7);
        row.failures = u32::try_from(number % 4).unwrap();
        row.key = (number % 7 == 0).then(|| format!("key-{number}").into_bytes().into());
        rows.push(row);
    }
    let mut steps = inserts(&rows);
    for number in 100..110 {
        let row = row(number, ["mail", "shop/notify"][number as usize % 2], -9_000);
        steps.extend(dead(&row, "the server said 500"));
    }
    steps.push(set("namespace/shop", "{\"concurrency\":3}"));
    steps.push(set("namespace/idle", "{}"));
    steps.push(set("paused/shop", ""));
    let calendar = "{\"version\":1,\"last\":0,\"calendar\":{\"expression\":\"0 2 * * *\",\"zone\":\"Europe/Berlin\",\"handler\":\"nightly\"}}";
    steps.push(set("calendar/nightly", calendar));
    drop(store(file, &steps));
    rows.sort_by_key(|row| (row.due, row.id));
    rows
}
