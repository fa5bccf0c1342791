use std::time::{Duration, SystemTime};

use super::files::Files;
use super::lsm::Sizes;
use super::schema::{STEPS, Step};
use super::vacuum::Vacuum;

/// Options for opening a file.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub(crate) limit: Option<u64>,
    pub(crate) is_brief: bool,
    pub(crate) accept_loss: bool,
}

impl Options {
    /// Sets the maximum size of the file in bytes. The WAL and the reserve, about 30 MiB together, are in addition to
    /// that; the WAL is larger while another process has a long read transaction.
    ///
    /// Once the timers, dead letters and so on take seven eighths of the limit, inserts are answered with
    /// [`Full`](waterwheel_durable_core::store::Outcome::Full). The last eighth is for other steps: dead letters, retries, archived records and
    /// cascades take space. If even that is used up, these are refused, while timers can still be settled and
    /// cancelled.
    #[must_use]
    pub fn limit(mut self, bytes: u64) -> Options {
        self.limit = Some(bytes);
        self
    }

    /// Opens the file for a few commits only: the store creates no reserve. It therefore writes no more than the
    /// commits, and leaves no reserve owned by another user to the process that opens the file next.
    #[must_use]
    pub fn brief(mut self) -> Options {
        self.is_brief = true;
        self
    }

    /// Sets whether a file is opened although [acknowledged work is gone](crate::OpenError::AcknowledgedLost). A [`Notice`](waterwheel_durable_core::store::Notice)
    /// says what is missing. No id is used twice.
    ///
    /// Timers inserted in the missing commits are lost, and timers delivered or cancelled in them may be delivered
    /// again. If the file may contain pages of different commits, it is read completely, and refused as
    /// [`Corrupt`](crate::OpenError::Corrupt) if it is damaged.
    #[must_use]
    pub fn accept_loss(mut self, accept_loss: bool) -> Options {
        self.accept_loss = accept_loss;
        self
    }
}

/// All options for opening a file. [`Options`] sets some of them for users; tests also set the others, to inject faults and to reach limits sooner.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions<'a> {
    /// The name of the VFS, or `None` for SQLite's own.
    pub vfs: Option<&'a str>,
    /// The file operations that do not go through SQLite.
    pub files: Files,
    /// The value of `PRAGMA synchronous`. Tests lower it to see that they fail.
    pub synchronous: &'a str,
    /// The number of pages in the WAL at which they are copied into the file.
    pub long_wal: i64,
    /// The number of uncopied pages at which a separate thread copies the WAL. On a VFS, it never does.
    pub checkpointer_wal: i64,
    /// The sizes of the index of the keys.
    pub key_sizes: Sizes,
    /// When the file shrinks.
    pub vacuum: Vacuum,
    /// The steps from older versions of the tables.
    pub steps: &'a [Step],
    /// The minimum and maximum length of the reserve. If both are 0, there is none.
    pub reserve: (u64, u64),
    /// How long a full disk is considered full before it is checked again.
    pub full: Duration,
    /// The wall clock, from which the first opening of a copy derives its epoch.
    pub now: fn() -> SystemTime,
    /// The maximum size of the file.
    pub limit: Option<u64>,
    /// Whether a file is opened although acknowledged work is gone.
    pub accept_loss: bool,
}

impl OpenOptions<'_> {
    /// The options of [`SqliteStore::open`](super::SqliteStore::open).
    pub const DEFAULT: OpenOptions<'static> = OpenOptions {
        vfs: None,
        files: Files::SYSTEM,
        synchronous: "EXTRA",
        long_wal: 1_000,
        checkpointer_wal: 8_192,
        key_sizes: Sizes::USUAL,
        vacuum: Vacuum::USUAL,
        steps: &STEPS,
        reserve: (1 << 20, 16 << 20),
        full: Duration::from_secs(1),
        now: SystemTime::now,
        limit: None,
        accept_loss: false,
    };
}
