//! The protocol of parent and child: the options of a child, and the lines that report what it does. Both are JSON.
//!
//! A line that announces something is in the pipe before it is done, and a line that reports something is in the pipe after it: in between, it may have
//! happened or not. Lines in the pipe outlive a kill.
//!
//! Requests and ends name the thread that wrote the line. A thread that writes another line after an end has returned from the handler by then, and handed the
//! end to the engine: there is no `await` in between.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The delays after each failure of a timer. The failure after the last delay makes it a dead letter.
pub(crate) const RETRY_DELAYS_MILLIS: [i64; 3] = [30, 100, 300];

pub(crate) fn retry_delays() -> [Duration; RETRY_DELAYS_MILLIS.len()] {
    RETRY_DELAYS_MILLIS.map(|millis| Duration::from_millis(millis.unsigned_abs()))
}

/// The number of threads of a child's runtime, unless it is single-threaded.
pub(crate) const WORKERS: usize = 4;
/// The handler whose lateness is measured: its namespace has no faults of its own.
pub(crate) const MEASURED: &str = "plain";
/// The hours of each suspension of the machine, and the number of suspensions in the life of a soak.
pub(crate) const SUSPENDED_HOURS: i64 = 25;
pub(crate) const SUSPENSIONS: i64 = 2;
/// The fault of a store without a reserve. It is planted by opening the store without one.
pub(crate) const WITHOUT_RESERVE: &str = "without-reserve";

/// Options of a child process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ChildOptions {
    pub(crate) file: PathBuf,
    pub(crate) round: u64,
    pub(crate) seed: u64,
    /// Whether the runtime has one thread.
    pub(crate) single: bool,
    /// How far its wall clock is ahead of the machine's, in microseconds.
    pub(crate) shift: i64,
    /// The number of callers. Without any, the child only delivers existing timers.
    pub(crate) callers: usize,
    /// Whether the clock is moved while it runs.
    pub(crate) moves: bool,
    /// The maximum length of payloads in bytes, apart from a few.
    pub(crate) largest: usize,
    /// The maximum size of the file in bytes, or 0 for no limit.
    pub(crate) limit: u64,
    /// The size of the disk in memory in bytes, or 0 if the file is a real one.
    pub(crate) memory: usize,
    /// The length of a soak's life in milliseconds: a service with namespaces, a calendar and faults. 0 if this is not a soak.
    pub(crate) soak: u64,
    /// The number of requests that all callers make in a second, or 0 for as many as they can.
    pub(crate) rate: u32,
    /// The planted fault, or empty for none.
    pub(crate) fault: String,
}

impl ChildOptions {
    /// The options of the first child, whose clock equals the machine's.
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
    /// The parent: a child was started.
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
    /// A commit returned, which settled this many deliveries, moved them for a retry, or made them dead letters.
    CommitReturned {
        settled: u64,
    },
    /// The wall clock is about to be moved from this time.
    ClockMoves {
        at: u64,
        wall: i64,
    },
    ClockMoved {
        at: u64,
    },
    /// All moves of the clock were played.
    ClockDone,
    /// A dead letter that exists at the end.
    DeadLetter {
        id: u64,
        attempts: u32,
    },
    /// A pause was answered. From then on nothing in the namespace begins.
    Paused {
        at: u64,
        namespace: String,
    },
    /// A namespace is about to be resumed.
    Resumes {
        namespace: String,
    },
    /// A calendar's handler was called for the occurrence at this time, in microseconds.
    Occurred {
        at: u64,
        wall: i64,
        time: i64,
    },
    /// The parent: the file is about to be copied.
    Copies {
        number: u64,
    },
    /// The copy was made. Sent by the child after it has learned that from the parent, or by the parent after the child's end.
    Copied {
        number: u64,
    },
    /// The parent: the copy has replaced the file.
    Restored {
        number: u64,
    },
    /// The parent to the child: a foreign file takes up all space, or is deleted.
    Disk {
        is_full: bool,
    },
    /// A fault on purpose begins or ends. For readers of the log.
    Fault {
        text: String,
    },
    /// The child has seen something that must not happen.
    Wrong {
        text: String,
    },
}

/// A timer to insert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NewTimer {
    pub(crate) handler: String,
    /// The due time, in microseconds of the wall clock.
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
    /// An insert was refused for lack of space: the timer does not exist.
    Full,
    /// An insert came after the shutdown had begun: the timer does not exist.
    ShuttingDown,
    /// An insert of a partly refused batch: it was done or not.
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
    /// The due time in milliseconds.
    pub(crate) due: i64,
    pub(crate) handler: String,
}

/// How an attempt has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum How {
    Well,
    Failed,
    /// The handler has panicked, or its future was dropped.
    Dropped,
    Dead,
}

/// Timers of earlier rounds, which the parent sends before the child begins.
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
