//! The temporary directory of a test, the stores in it, and another process that uses one of its files.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Connection;
use waterwheel_durable_core::store::{PageLimit, Row, RowCursor, Store};
use waterwheel_durable_sqlite::{OpenOptions, SqliteStore};

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = root.join(format!("{process}-{count}"));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _: std::io::Result<()> = fs::remove_dir_all(&self.0);
    }
}

/// A test of this program that runs once more, in a process of its own, and is killed.
pub(crate) struct Other(Child);

impl Other {
    const PATH: &str = "WATERWHEEL_PATH";
    const READY: &str = "it is ready";

    /// Starts a test, which is given the path of a file, and waits until it is ready.
    pub(crate) fn start(test: &str, path: &Path) -> Other {
        let mut other = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(Other::PATH, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == Other::READY));
        Other(other)
    }

    /// The path, if this is the other process.
    pub(crate) fn path() -> Option<PathBuf> {
        std::env::var_os(Other::PATH).map(PathBuf::from)
    }

    /// Says that the other process is ready, and waits until its input ends.
    pub(crate) fn wait_for_the_end() {
        println!("\n{}", Other::READY);
        std::io::stdin().lines().for_each(drop);
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A new store on `timers.db` in a folder of its own, opened for the first time.
pub(crate) fn new_store() -> (Folder, PathBuf, SqliteStore) {
    let folder = Folder::new();
    let path = folder.file("timers.db");
    let store = begun(&path);
    (folder, path, store)
}

/// Opens a store for its next epoch.
pub(crate) fn begun(path: &Path) -> SqliteStore {
    let mut store = SqliteStore::open(path).unwrap();
    store.begin().unwrap();
    store
}

/// Opens a store with these options for its next epoch. It has no lock.
pub(crate) fn begun_as(path: &Path, set: impl FnOnce(&mut OpenOptions<'_>)) -> SqliteStore {
    let mut options = OpenOptions::DEFAULT;
    set(&mut options);
    let mut store = SqliteStore::open_with_options(path, &options).unwrap();
    store.begin().unwrap();
    store
}

/// All timers of a handler.
pub(crate) fn load(store: &mut SqliteStore, handler: &str) -> Vec<Row> {
    let limit = PageLimit::rows(usize::MAX);
    let rows = store.load(handler, RowCursor::START, i64::MAX, limit);
    rows.unwrap()
}

/// Changes a file behind the back of its store.
pub(crate) fn execute(path: &Path, sql: &str) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(sql).unwrap();
}

/// Reads a number from a file.
pub(crate) fn query(path: &Path, sql: &str) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}
