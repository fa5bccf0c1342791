//! A folder of a test, deleted as the test ends, and another process with a file of it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

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

    /// The path, in the other process.
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
