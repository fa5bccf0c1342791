//! Who runs the checkpoint of a WAL that has become long?
//!
//! The store copies its WAL into the file after a commit, some megabytes at a time. Beside a reader whose transaction stays open it can copy nothing, and the
//! WAL grows until that ends. All of it at once would hold up the commits for as long as the disk needs for hundreds of megabytes. So a second connection
//! copies a WAL that is [far longer](Checkpointer::takes) than usual, on a thread of its own: SQLite lets commits go on meanwhile (a checkpoint that is `PASSIVE`).
//! Pass by pass, as long as commits add less than a pass copies; the store copies the rest, so that the WAL has an end. A pass copies all that there is, and syncs
//! the file once: SQLite counts what an interrupted one has copied for nothing, so there are no smaller ones.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, InterruptHandle, OpenFlags};

use super::connection;
use super::options::OpenOptions;
use super::wal::Length;

/// How long it waits after a pass in which a reader has kept it from copying all.
const PAUSE: Duration = Duration::from_millis(100);

/// A pass that goes on in its thread.
struct UnderWay {
    begun: Length,
    thread: JoinHandle<Copied>,
    interrupt: Interrupt,
}

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnderWay")
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}

/// What interrupts the connection of a pass, once it has one.
type Interrupt = Arc<OnceLock<InterruptHandle>>;

/// How often a pass is interrupted until it ends: what comes before its copying begins is lost on SQLite.
const AGAIN: Duration = Duration::from_millis(1);

/// A pass that has ended.
#[derive(Debug)]
struct Pass {
    begun: Length,
    at: Instant,
    /// It has copied all that there was as it began.
    is_whole: bool,
}

/// What a thread hands back. `None`: it could not begin.
pub(crate) type Copied = rusqlite::Result<Option<Length>>;

/// Runs checkpoints on a connection of its own, beside the store's, and ends before the store does.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    /// A WAL of so many pages is for it. `None`: none is.
    min: Option<i64>,
    under_way: Option<UnderWay>,
    last: Option<Pass>,
    /// It could not begin: this WAL is for the store.
    gives_way: bool,
}

/// Before this version of SQLite, a copy beside commits could lose some: <https://sqlite.org/wal.html#walresetbug>. The one that is bundled is newer.
const LEAST_VERSION: i32 = 3_051_003;

impl Checkpointer {
    pub(crate) fn new(min: Option<i64>) -> Checkpointer {
        Checkpointer::with_version(min, rusqlite::version_number())
    }

    fn with_version(min: Option<i64>, version: i32) -> Checkpointer {
        Checkpointer {
            min: min.filter(|_| version >= LEAST_VERSION),
            under_way: None,
            last: None,
            gives_way: false,
        }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Whether a WAL is so long that it is for it from the first page on.
    pub(crate) fn is_long_enough(&self, wal: Length) -> bool {
        self.min.is_some_and(|min| wal.left() >= min)
    }

    /// Whether a WAL is for it, and not for the store, which copies `usual` pages at a time.
    pub(crate) fn takes(&mut self, wal: Length, usual: i64) -> bool {
        let Some(min) = self.min else {
            return false;
        };
        let min = match &self.last {
            Some(_) => min.min(2 * usual),
            None => min,
        };
        // Commits would add to it without end otherwise.
        let falls_behind = |last: &Pass| last.is_whole && wal.left() > last.begun.left() / 2;
        if wal.left() < min || self.last.as_ref().is_some_and(falls_behind) {
            self.last = None;
            self.gives_way = false;
            return false;
        }
        !self.gives_way
    }

    /// Begins a pass, unless a reader has kept the last one from copying all a moment ago. Returns whether the WAL is left to it.
    pub(crate) fn begin(&mut self, file: &Path, wal: Length) -> bool {
        let waits = |last: &Pass| !last.is_whole && last.at.elapsed() < PAUSE;
        if self.last.as_ref().is_some_and(waits) {
            return true;
        }
        let file = file.to_owned();
        self.spawn(wal, move |interrupt| copy(&file, interrupt));
        !self.gives_way
    }

    fn spawn(&mut self, wal: Length, pass: impl FnOnce(&Interrupt) -> Copied + Send + 'static) {
        let interrupt = Interrupt::default();
        let own = Arc::clone(&interrupt);
        let thread = thread::Builder::new().name("waterwheel-checkpoint".to_owned());
        match thread.spawn(move || pass(&own)) {
            Ok(thread) => {
                self.under_way = Some(UnderWay {
                    begun: wal,
                    thread,
                    interrupt,
                });
            }
            Err(_) => self.gives_way = true,
        }
    }

    /// Notes the end of a pass, if it has ended, and returns what it has copied. `None` if that is not known.
    ///
    /// # Errors
    ///
    /// What SQLite says of it, once.
    pub(crate) fn poll(&mut self) -> Copied {
        match &self.under_way {
            Some(pass) if pass.thread.is_finished() => self.wait(),
            _ => Ok(None),
        }
    }

    /// The same, and waits for it.
    pub(crate) fn wait(&mut self) -> Copied {
        let Some(pass) = self.under_way.take() else {
            return Ok(None);
        };
        let begun = pass.begun;
        // After a panic, the store copies the WAL itself.
        let copied = pass.thread.join().unwrap_or(Ok(None));
        match &copied {
            Ok(Some(wal)) => {
                let is_whole = wal.copied >= begun.all;
                let at = Instant::now();
                self.last = Some(Pass {
                    begun,
                    at,
                    is_whole,
                });
            }
            _ => self.gives_way = true,
        }
        copied
    }

    /// Ends a pass that is under way: what it has copied counts for nothing, and the WAL has it. If its thread syncs the file by then, this waits for that.
    ///
    /// # Errors
    ///
    /// What SQLite says of a pass that has failed before.
    pub(crate) fn end(&mut self) -> rusqlite::Result<()> {
        while let Some(pass) = &self.under_way
            && !pass.thread.is_finished()
        {
            if let Some(interrupt) = pass.interrupt.get() {
                interrupt.interrupt();
            }
            thread::sleep(AGAIN);
        }
        match self.wait() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                Ok(())
            }
            ended => ended.map(drop),
        }
    }
}

#[cfg(test)]
impl Checkpointer {
    /// Has another pass under way.
    pub(crate) fn stand_in(
        &mut self,
        pass: impl FnOnce(&OnceLock<InterruptHandle>) -> rusqlite::Result<()> + Send + 'static,
    ) {
        let none = Length { all: 0, copied: 0 };
        self.spawn(none, move |interrupt| pass(interrupt).map(|()| Some(none)));
    }

    /// Whether the pass has ended that is under way.
    pub(crate) fn has_ended(&self) -> bool {
        let pass = self.under_way.as_ref();
        pass.is_none_or(|pass| pass.thread.is_finished())
    }
}

fn copy(file: &Path, interrupt: &Interrupt) -> Copied {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // Nothing was copied if this fails, and the store's own connection is there already.
    let Ok(connection) = Connection::open_with_flags(file, flags) else {
        return Ok(None);
    };
    let off = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    // While another process has the file for itself, the WAL is the store's, which waits for it.
    let off = off.and_then(|_| connection.busy_timeout(Duration::ZERO));
    if off.is_err() || connection::configure(&connection, OpenOptions::DEFAULT.synchronous).is_err()
    {
        return Ok(None);
    }
    let _: Result<(), InterruptHandle> = interrupt.set(connection.get_interrupt_handle());
    Length::by(&connection, "PRAGMA wal_checkpoint(PASSIVE)").map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: i64 = 8_000;
    const USUAL: i64 = 1_000;

    fn wal(all: i64, copied: i64) -> Length {
        Length { all, copied }
    }

    /// One whose last pass has begun at this length, and copied so much.
    fn after(begun: Length, copied: i64) -> Checkpointer {
        let last = Pass {
            begun,
            at: Instant::now(),
            is_whole: copied >= begun.all,
        };
        let mut checkpointer = Checkpointer::new(Some(MIN));
        checkpointer.last = Some(last);
        checkpointer
    }

    #[test]
    fn a_wal_that_is_far_too_long_is_for_it_until_little_is_left() {
        let mut checkpointer = Checkpointer::new(Some(MIN));
        assert!(!checkpointer.takes(wal(7_999, 0), USUAL));
        // What is in the file already needs no copying.
        assert!(!checkpointer.takes(wal(50_000, 49_000), USUAL));
        assert!(checkpointer.takes(wal(8_000, 0), USUAL));
        let whole =
            |left: i64| after(wal(50_000, 0), 50_000).takes(wal(50_000 + left, 50_000), USUAL);
        assert!(whole(2_000) && !whole(1_999));
        assert!(!Checkpointer::new(None).takes(wal(1_000_000, 0), USUAL));
    }

    #[test]
    fn none_is_for_it_with_an_older_version_of_sqlite() {
        let takes = |version| {
            Checkpointer::with_version(Some(MIN), version).takes(wal(1_000_000, 0), USUAL)
        };
        assert!(takes(LEAST_VERSION) && !takes(3_051_002));
    }

    #[test]
    fn commits_that_add_as_much_as_it_copies_wait_for_the_store() {
        let mut checkpointer = after(wal(50_000, 0), 50_000);
        assert!(!checkpointer.takes(wal(75_001, 50_000), USUAL));
        let mut checkpointer = after(wal(50_000, 0), 50_000);
        assert!(checkpointer.takes(wal(75_000, 50_000), USUAL));
        // A reader is why, and not the commits.
        let mut checkpointer = after(wal(50_000, 0), 7_000);
        assert!(checkpointer.takes(wal(90_000, 7_000), USUAL));
    }

    #[test]
    fn it_waits_a_moment_for_a_reader_to_end() {
        let nowhere = Path::new("/nowhere/timers.db");
        let mut checkpointer = after(wal(50_000, 0), 7_000);
        let ended = |checkpointer: &mut Checkpointer, at: Option<Instant>| {
            checkpointer.last.as_mut().unwrap().at = at.unwrap();
        };
        let now = Instant::now();
        // An hour from now: however long this test is held up, the pause is not over.
        ended(
            &mut checkpointer,
            now.checked_add(Duration::from_secs(3_600)),
        );
        assert!(checkpointer.begin(nowhere, wal(90_000, 7_000)) && !checkpointer.is_under_way());
        ended(&mut checkpointer, now.checked_sub(PAUSE));
        assert!(checkpointer.begin(nowhere, wal(90_000, 7_000)) && checkpointer.is_under_way());
        // It could not begin: the store copies this WAL itself, and the next one is for the checkpointer again.
        checkpointer.wait().unwrap();
        assert!(!checkpointer.takes(wal(90_000, 7_000), USUAL));
        assert!(!checkpointer.takes(wal(90_000, 90_000), USUAL));
        assert!(checkpointer.takes(wal(9_000, 0), USUAL));
    }
}
