//! What parent and child say to each other: how a child is to live, and the lines by which it says what it does.
//!
//! A line that announces something is in the pipe before it is done, and a line that reports something is in the pipe after it: between the two, it may have
//! happened or not. What is in the pipe outlives a kill.
//!
//! Requests and ends name the thread that has written the line. A thread that writes another line after an end has returned from the handler by then, and handed
//! the end to the engine: there is no `await` in between.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::str::{FromStr, Split};

use serde::{Deserialize, Serialize};

/// The delays after the failures of a timer. After the last one, a failure makes it a dead letter.
pub(crate) const RETRY_DELAYS_MILLIS: [i64; 3] = [30, 100, 300];
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
    /// Of the first child: the clock is the machine's, and stays so.
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

/// Declares the lines: the word that each begins with, and its fields in order, each with the way in which it is written.
macro_rules! lines {
    ($(
        $(#[$meta:meta])*
        $name:ident = $word:literal $({ $($(#[$of:meta])* $field:ident: $type:ty = $way:ident),+ $(,)? })?,
    )+) => {
        /// A line of the log.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) enum Line {
            $($(#[$meta])* $name $({ $($(#[$of])* $field: $type),+ })?,)+
        }

        impl Display for Line {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Line::$name $({ $($field),+ })? => {
                        f.write_str($word)?;
                        $($(write!(f, " {}", written::$way($field))?;)+)?
                    })+
                }
                Ok(())
            }
        }

        impl FromStr for Line {
            type Err = InvalidLine;

            fn from_str(text: &str) -> Result<Line, InvalidLine> {
                let mut fields = Fields(text.split(' '));
                let line = match fields.text()?.as_str() {
                    $($word => Line::$name $({ $($field: fields.$way()?),+ })?,)+
                    _ => return Err(InvalidLine),
                };
                match fields.0.next() {
                    None => Ok(line),
                    Some(_) => Err(InvalidLine),
                }
            }
        }
    };
}

lines! {
    /// The parent: a child is started.
    Round = "round" { number: u64 = number },
    /// The parent: the child was killed.
    Killed = "killed",
    /// The parent: the child has shut down.
    Stopped = "stopped",
    Opened = "opened",
    Insert = "insert" {
        request: u64 = number,
        thread: usize = number,
        handler: String = text,
        /// In microseconds of the wall clock.
        due: i64 = number,
        key: Option<String> = key,
    },
    Created = "created" { request: u64 = number, timer: Named = named },
    /// A timer of the handler has the key of an insert.
    Existing = "existing" { request: u64 = number, timer: Named = named },
    /// An insert was refused for want of space: the timer is not there.
    Full = "full" { request: u64 = number },
    /// An insert of a batch of which some were refused: it was done or not.
    Unknown = "unknown" { request: u64 = number },
    Cancel = "cancel" { request: u64 = number, thread: usize = number, id: u64 = hex },
    Reschedule = "reschedule" {
        request: u64 = number,
        thread: usize = number,
        id: u64 = hex,
        due: i64 = number,
    },
    Redrive = "redrive" { request: u64 = number, thread: usize = number, id: u64 = hex },
    /// The answers to a cancel, a reschedule or a redrive.
    Done = "done" { request: u64 = number },
    Fired = "fired" { request: u64 = number },
    NotFound = "none" { request: u64 = number },
    /// A handler has been called.
    Begin = "begin" {
        at: u64 = number,
        id: u64 = hex,
        /// The request that inserted the timer, read from the payload.
        insert: u64 = number,
        attempt: u32 = number,
        /// What the wall clock shows, in microseconds.
        wall: i64 = number,
        /// The due time of the delivery.
        due: i64 = number,
        handler: String = text,
        key: Option<String> = key,
    },
    /// A handler is about to return.
    End = "end" {
        thread: usize = number,
        id: u64 = hex,
        attempt: u32 = number,
        how: How = how,
        wall: i64 = number,
    },
    /// The store is asked for a commit.
    CommitBegins = "commit" { steps: usize = number },
    CommitReturned = "committed" {
        /// How many deliveries it has settled, moved to be tried again, or made dead letters.
        settled: u64 = number,
        /// How many inserts it has not done for want of space.
        full: u64 = number,
    },
    /// The wall clock is about to be moved. It showed this.
    ClockMoves = "moves" { at: u64 = number, wall: i64 = number },
    ClockMoved = "moved" { at: u64 = number },
    /// All moves of the clock were played.
    ClockDone = "clock-done",
    /// A dead letter that is there at the end.
    DeadLetter = "letter" { id: u64 = hex, attempts: u32 = number },
    /// A namespace is paused, by an answer. From then on nothing of it begins.
    Paused = "paused" { at: u64 = number, namespace: String = text },
    /// It is about to be resumed.
    Resumes = "resumes" { namespace: String = text },
    /// A calendar's handler has been called, for the occurrence of this time, in microseconds.
    Occurred = "occurred" { at: u64 = number, wall: i64 = number, time: i64 = number },
    /// The parent: the file is about to be copied.
    Copies = "copies" { number: u64 = number },
    /// The copy was made. The child says so after it has learned that from the parent, or the parent after the child's end.
    Copied = "copied" { number: u64 = number },
    /// The parent: the copy is in the place of the file.
    Restored = "restored" { number: u64 = number },
    /// Something goes wrong on purpose, or does no longer. It is for a reader of the log.
    Fault = "fault" { text: String = rest },
    /// The child has seen something that must not be.
    Wrong = "wrong" { text: String = rest },
}

/// A timer's handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) id: u64,
    /// In milliseconds.
    pub(crate) due: i64,
    pub(crate) handler: String,
}

impl Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}@{}@{}", self.id, self.due, self.handler)
    }
}

/// An answer to a cancel, a reschedule or a redrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    AlreadyFired,
    NotFound,
}

impl Answer {
    pub(crate) fn line(self, request: u64) -> Line {
        match self {
            Answer::Done => Line::Done { request },
            Answer::AlreadyFired => Line::Fired { request },
            Answer::NotFound => Line::NotFound { request },
        }
    }
}

/// How an attempt has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Well,
    Failed,
    /// It has panicked, or was dropped.
    Dropped,
    Dead,
}

impl How {
    const ALL: [(&'static str, How); 4] = [
        ("well", How::Well),
        ("failed", How::Failed),
        ("dropped", How::Dropped),
        ("dead", How::Dead),
    ];
}

/// How the fields of a line are written.
mod written {
    use std::fmt::{self, Display};

    use crate::protocol::{How, Named};

    struct Hex(u64);

    impl Display for Hex {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{:x}", self.0)
        }
    }

    pub(super) fn number<T: Copy>(number: &T) -> T {
        *number
    }

    pub(super) fn hex(id: &u64) -> impl Display {
        Hex(*id)
    }

    pub(super) fn text(text: &str) -> &str {
        text
    }

    pub(super) fn key(key: &Option<String>) -> &str {
        key.as_deref().unwrap_or("-")
    }

    pub(super) fn named(timer: &Named) -> &Named {
        timer
    }

    pub(super) fn how(how: &How) -> &'static str {
        let mut all = How::ALL.into_iter();
        all.find(|(_, it)| it == how).map_or("", |(text, _)| text)
    }

    pub(super) fn rest(text: &str) -> String {
        text.replace('\n', " ")
    }
}

/// The text is no line.
#[derive(Debug)]
pub(crate) struct InvalidLine;

/// How they are read.
struct Fields<'a>(Split<'a, char>);

impl Fields<'_> {
    fn text(&mut self) -> Result<String, InvalidLine> {
        self.0.next().map(Into::into).ok_or(InvalidLine)
    }

    fn number<T: FromStr>(&mut self) -> Result<T, InvalidLine> {
        let number = self.0.next().and_then(|it| it.parse().ok());
        number.ok_or(InvalidLine)
    }

    fn hex(&mut self) -> Result<u64, InvalidLine> {
        hex(self.0.next().ok_or(InvalidLine)?)
    }

    fn key(&mut self) -> Result<Option<String>, InvalidLine> {
        Ok(Some(self.text()?).filter(|it| it != "-"))
    }

    fn how(&mut self) -> Result<How, InvalidLine> {
        let text = self.0.next().ok_or(InvalidLine)?;
        let how = How::ALL.into_iter().find(|(it, _)| *it == text);
        how.map(|(_, how)| how).ok_or(InvalidLine)
    }

    fn named(&mut self) -> Result<Named, InvalidLine> {
        let mut parts = self.0.next().ok_or(InvalidLine)?.splitn(3, '@');
        let mut part = || parts.next().ok_or(InvalidLine);
        Ok(Named {
            id: hex(part()?)?,
            due: part()?.parse().map_err(|_| InvalidLine)?,
            handler: part()?.into(),
        })
    }

    fn rest(&mut self) -> Result<String, InvalidLine> {
        let all: Vec<&str> = self.0.by_ref().collect();
        Ok(all.join(" "))
    }
}

fn hex(text: &str) -> Result<u64, InvalidLine> {
    u64::from_str_radix(text, 16).map_err(|_| InvalidLine)
}
