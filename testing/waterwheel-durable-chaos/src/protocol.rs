//! The protocol of parent and child: how a child is to live, and the lines by which it says what it does. Both are JSON.
//!
//! A line that announces something is in the pipe before it is done, and a line that reports something is in the pipe after it: between the two, it may have
//! happened or not. What is in the pipe outlives a kill.
//!
//! Requests and ends name the thread that has written the line. A thread that writes another line after an end has returned from the handler by then, and handed
//! the end to the engine: there is no `await` in between.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The delays after the failures of a timer. After the last one, a failure makes it a dead letter.
pub(crate) const RETRY_DELAYS_MILLIS: [i64; 3] = [30, 100, 300];

pub(crate) fn retry_delays() -> [Duration; RETRY_DELAYS_MILLIS.len()] {
    RETRY_DELAYS_MILLIS.map(|millis| Duration::from_millis(millis.unsigned_abs()))
}

/// How many threads the runtime of a child has, unless it has one.
pub(crate) const WORKERS: usize = 4;
/// The handler whose lateness counts: its namespace has no trouble of its own.
pub(crate) const MEASURED: &str = "plain";
/// How long the machine is suspended each time, and how often in the life of a soak.
pub(crate) const SUSPENDED_HOURS: i64 = 25;
pub(crate) const SUSPENSIONS: i64 = 2;
/// The fault that the store has no reserve. It is planted by opening the store without one.
pub(crate) const WITHOUT_RESERVE: &str = "without-reserve";

/// Options of a child process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ChildOptions {
    pub(crate) file: PathBuf,
    pub(crate) round: u64,
    pub(crate) seed: u64,
    /// A runtime with one thread.
    pub(crate) single: bool,
    /// By how many microseconds its wall clock is ahead of the machine's.
    pub(crate) shift: i64,
    /// None: only what is there is delivered.
    pub(crate) callers: usize,
    /// The clock is moved while it runs.
    pub(crate) moves: bool,
    /// How many bytes payloads have at most, but for a few.
    pub(crate) largest: usize,
    /// How many bytes the file may have. No limit, if it is 0.
    pub(crate) limit: u64,
    /// How many bytes the disk in memory has. If it is 0, the file is a real one.
    pub(crate) memory: usize,
    /// A service with namespaces and a calendar, in whose life of so many milliseconds this and that goes wrong. Not so, if it is 0.
    pub(crate) soak: u64,
    /// How many requests all callers make in a second. As many as they can, if it is 0.
    pub(crate) rate: u32,
    /// None if empty.
    pub(crate) fault: String,
}

impl ChildOptions {
    /// Options of the first child: the clock is the machine's, and stays so.
    pub(crate) fn new(folder: &Path, callers: usize, fault: String) -> ChildOptions {
        ChildOptions {
            file: folder.join("timers.db"),
            callers,
            largest: 80,
            fault,
            ..ChildOptions::default()
        }
    }
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Line {
    /// The parent: a child is started.
    Round {
        number: u64,
    },
    /// The parent: the child was killed, or has shut down.
    Over {
        is_clean: bool,
    },
    Opened,
    Asked {
        request: u64,
        thread: usize,
        what: Request,
    },
    Answered {
        request: u64,
        answer: Answer,
    },
    /// A handler has been called.
    Begin(Begin),
    /// A handler is about to return.
    End {
        thread: usize,
        id: u64,
        attempt: u32,
        how: How,
        wall: i64,
    },
    /// The store is asked for a commit.
    CommitBegins {
        steps: usize,
    },
    /// So many deliveries were settled, moved to be tried again, or made dead letters.
    CommitReturned {
        settled: u64,
    },
    /// The wall clock is about to be moved. It showed this.
    ClockMoves {
        at: u64,
        wall: i64,
    },
    ClockMoved {
        at: u64,
    },
    /// All moves of the clock were played.
    ClockDone,
    /// A dead letter that is there at the end.
    DeadLetter {
        id: u64,
        attempts: u32,
    },
    /// A namespace is paused, by an answer. From then on nothing of it begins.
    Paused {
        at: u64,
        namespace: String,
    },
    /// It is about to be resumed.
    Resumes {
        namespace: String,
    },
    /// A calendar's handler has been called, for the occurrence of this time, in microseconds.
    Occurred {
        at: u64,
        wall: i64,
        time: i64,
    },
    /// The parent: the file is about to be copied.
    Copies {
        number: u64,
    },
    /// The copy was made. The child says so after it has learned that from the parent, or the parent after the child's end.
    Copied {
        number: u64,
    },
    /// The parent: the copy is in the place of the file.
    Restored {
        number: u64,
    },
    /// The parent to the child: a file of others takes all space, or is gone.
    Disk {
        is_full: bool,
    },
    /// Something goes wrong on purpose, or does no longer. It is for a reader of the log.
    Fault {
        text: String,
    },
    /// The child has seen something that must not be.
    Wrong {
        text: String,
    },
}

/// A timer to insert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NewTimer {
    pub(crate) handler: String,
    /// In microseconds of the wall clock.
    pub(crate) due: i64,
    pub(crate) key: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Request {
    Insert(NewTimer),
    Cancel { id: u64 },
    Reschedule { id: u64, due: i64 },
    Redrive { id: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    Created(Named),
    /// A timer of the handler has the key of an insert.
    Existing(Named),
    /// An insert was refused for want of space: the timer is not there.
    Full,
    /// An insert of a batch of which some were refused: it was done or not.
    Unknown,
    /// The answers to a cancel, a reschedule or a redrive.
    Done,
    AlreadyFired,
    NotFound,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begin {
    pub(crate) at: u64,
    pub(crate) id: u64,
    /// The request that inserted the timer, read from the payload.
    pub(crate) insert: u64,
    pub(crate) attempt: u32,
    /// The wall clock, in microseconds.
    pub(crate) wall: i64,
    /// The due time of the delivery.
    pub(crate) due: i64,
    pub(crate) handler: String,
    pub(crate) key: Option<String>,
}

/// A timer's handle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) id: u64,
    /// In milliseconds.
    pub(crate) due: i64,
    pub(crate) handler: String,
}

/// How an attempt has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum How {
    Well,
    Failed,
    /// It has panicked, or was dropped.
    Dropped,
    Dead,
}

/// Timers of earlier rounds: what the parent says before the child begins.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) alive: Vec<Named>,
    pub(crate) dead: Vec<u64>,
}

impl Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Line {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Line, serde_json::Error> {
        serde_json::from_str(text)
    }
}
