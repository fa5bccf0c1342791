//! The lines by which a child says what it does.
//!
//! A line that announces something is in the pipe before it is done, and a line that reports something is in the pipe after it: between the two, it may have
//! happened or not. What is in the pipe outlives a kill.
//!
//! Requests and ends name the thread that has written the line. A thread that writes another line after an end has returned from the handler by then, and handed
//! the end to the engine: there is no `await` in between.

use std::fmt;
use std::str::FromStr;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// The parent: a child is started.
    Round {
        number: u64,
    },
    /// The parent: the child was killed.
    Killed,
    /// The parent: the child has shut down.
    Stopped,
    Opened,
    Insert {
        request: u64,
        thread: usize,
        handler: String,
        /// In microseconds of the wall clock.
        due: i64,
        key: Option<String>,
    },
    Inserted {
        request: u64,
        is_new: bool,
        timer: Named,
    },
    /// An insert was refused for want of space: the timer is not there.
    Full {
        request: u64,
    },
    /// An insert of a batch of which some were refused: it was done or not.
    Unknown {
        request: u64,
    },
    Cancel {
        request: u64,
        thread: usize,
        id: u64,
    },
    Reschedule {
        request: u64,
        thread: usize,
        id: u64,
        due: i64,
    },
    Redrive {
        request: u64,
        thread: usize,
        id: u64,
    },
    /// The answer to a cancel, a reschedule or a redrive.
    Answered {
        request: u64,
        answer: Answer,
    },
    /// A handler has been called.
    Begin {
        at: u64,
        id: u64,
        /// The request that inserted the timer, read from the payload.
        insert: u64,
        attempt: u32,
        /// What the wall clock shows, in microseconds.
        wall: i64,
        /// The due time of the delivery.
        due: i64,
        handler: String,
        key: Option<String>,
    },
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
    CommitReturned {
        /// How many deliveries it has settled, moved to be tried again, or made dead letters.
        settled: u64,
        /// How many inserts it has not done for want of space.
        full: u64,
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
    /// Something goes wrong on purpose, or does no longer. It is for a reader of the log.
    Fault(String),
    /// The child has seen something that must not be.
    Wrong(String),
}

/// A timer's handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) id: u64,
    /// In milliseconds.
    pub(crate) due: i64,
    pub(crate) handler: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    AlreadyFired,
    NotFound,
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

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |key: &Option<String>| key.clone().unwrap_or_else(|| "-".into());
        match self {
            Line::Round { number } => write!(f, "round {number}"),
            Line::Killed => f.write_str("killed"),
            Line::Stopped => f.write_str("stopped"),
            Line::Opened => f.write_str("opened"),
            Line::Insert {
                request,
                thread,
                handler,
                due,
                key,
            } => write!(f, "insert {request} {thread} {handler} {due} {}", text(key)),
            Line::Inserted {
                request,
                is_new,
                timer,
            } => {
                let answer = if *is_new { "created" } else { "existing" };
                write!(f, "{answer} {request} {timer}")
            }
            Line::Full { request } => write!(f, "full {request}"),
            Line::Unknown { request } => write!(f, "unknown {request}"),
            Line::Cancel {
                request,
                thread,
                id,
            } => write!(f, "cancel {request} {thread} {id:x}"),
            Line::Reschedule {
                request,
                thread,
                id,
                due,
            } => write!(f, "reschedule {request} {thread} {id:x} {due}"),
            Line::Redrive {
                request,
                thread,
                id,
            } => write!(f, "redrive {request} {thread} {id:x}"),
            Line::Answered { request, answer } => {
                let answer = match answer {
                    Answer::Done => "done",
                    Answer::AlreadyFired => "fired",
                    Answer::NotFound => "none",
                };
                write!(f, "{answer} {request}")
            }
            Line::Begin {
                at,
                id,
                insert,
                attempt,
                wall,
                due,
                handler,
                key,
            } => write!(
                f,
                "begin {at} {id:x} {insert} {attempt} {wall} {due} {handler} {}",
                text(key)
            ),
            Line::End {
                thread,
                id,
                attempt,
                how,
                wall,
            } => {
                let how = match how {
                    How::Well => "well",
                    How::Failed => "failed",
                    How::Dropped => "dropped",
                    How::Dead => "dead",
                };
                write!(f, "end {thread} {id:x} {attempt} {how} {wall}")
            }
            Line::CommitBegins { steps } => write!(f, "commit {steps}"),
            Line::CommitReturned { settled, full } => write!(f, "committed {settled} {full}"),
            Line::ClockMoves { at, wall } => write!(f, "moves {at} {wall}"),
            Line::ClockMoved { at } => write!(f, "moved {at}"),
            Line::ClockDone => f.write_str("clock-done"),
            Line::DeadLetter { id, attempts } => write!(f, "letter {id:x} {attempts}"),
            Line::Paused { at, namespace } => write!(f, "paused {at} {namespace}"),
            Line::Resumes { namespace } => write!(f, "resumes {namespace}"),
            Line::Occurred { at, wall, time } => write!(f, "occurred {at} {wall} {time}"),
            Line::Copies { number } => write!(f, "copies {number}"),
            Line::Copied { number } => write!(f, "copied {number}"),
            Line::Restored { number } => write!(f, "restored {number}"),
            Line::Fault(text) => write!(f, "fault {text}"),
            Line::Wrong(text) => write!(f, "wrong {}", text.replace('\n', " ")),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}@{}@{}", self.id, self.due, self.handler)
    }
}

/// The text is no line.
#[derive(Debug)]
pub(crate) struct InvalidLine;

struct Fields<'a>(std::str::Split<'a, char>);

impl<'a> Fields<'a> {
    fn text(&mut self) -> Result<&'a str, InvalidLine> {
        self.0.next().ok_or(InvalidLine)
    }

    fn number<T: FromStr>(&mut self) -> Result<T, InvalidLine> {
        self.text()?.parse().map_err(|_| InvalidLine)
    }

    fn id(&mut self) -> Result<u64, InvalidLine> {
        u64::from_str_radix(self.text()?, 16).map_err(|_| InvalidLine)
    }

    fn key(&mut self) -> Result<Option<String>, InvalidLine> {
        let text = self.text()?;
        Ok((text != "-").then(|| text.into()))
    }
}

impl FromStr for Line {
    type Err = InvalidLine;

    fn from_str(text: &str) -> Result<Line, InvalidLine> {
        let mut fields = Fields(text.split(' '));
        let word = fields.text()?;
        let line = match word {
            "round" => Line::Round {
                number: fields.number()?,
            },
            "killed" => Line::Killed,
            "stopped" => Line::Stopped,
            "opened" => Line::Opened,
            "insert" => Line::Insert {
                request: fields.number()?,
                thread: fields.number()?,
                handler: fields.text()?.into(),
                due: fields.number()?,
                key: fields.key()?,
            },
            "created" | "existing" => Line::Inserted {
                request: fields.number()?,
                is_new: word == "created",
                timer: fields.text()?.parse()?,
            },
            "full" => Line::Full {
                request: fields.number()?,
            },
            "unknown" => Line::Unknown {
                request: fields.number()?,
            },
            "cancel" => Line::Cancel {
                request: fields.number()?,
                thread: fields.number()?,
                id: fields.id()?,
            },
            "reschedule" => Line::Reschedule {
                request: fields.number()?,
                thread: fields.number()?,
                id: fields.id()?,
                due: fields.number()?,
            },
            "redrive" => Line::Redrive {
                request: fields.number()?,
                thread: fields.number()?,
                id: fields.id()?,
            },
            "done" | "fired" | "none" => Line::Answered {
                request: fields.number()?,
                answer: match word {
                    "done" => Answer::Done,
                    "fired" => Answer::AlreadyFired,
                    _ => Answer::NotFound,
                },
            },
            "begin" => Line::Begin {
                at: fields.number()?,
                id: fields.id()?,
                insert: fields.number()?,
                attempt: fields.number()?,
                wall: fields.number()?,
                due: fields.number()?,
                handler: fields.text()?.into(),
                key: fields.key()?,
            },
            "end" => Line::End {
                thread: fields.number()?,
                id: fields.id()?,
                attempt: fields.number()?,
                how: match fields.text()? {
                    "well" => How::Well,
                    "failed" => How::Failed,
                    "dropped" => How::Dropped,
                    "dead" => How::Dead,
                    _ => return Err(InvalidLine),
                },
                wall: fields.number()?,
            },
            "commit" => Line::CommitBegins {
                steps: fields.number()?,
            },
            "committed" => Line::CommitReturned {
                settled: fields.number()?,
                full: fields.number()?,
            },
            "moves" => Line::ClockMoves {
                at: fields.number()?,
                wall: fields.number()?,
            },
            "moved" => Line::ClockMoved {
                at: fields.number()?,
            },
            "clock-done" => Line::ClockDone,
            "letter" => Line::DeadLetter {
                id: fields.id()?,
                attempts: fields.number()?,
            },
            "paused" => Line::Paused {
                at: fields.number()?,
                namespace: fields.text()?.into(),
            },
            "resumes" => Line::Resumes {
                namespace: fields.text()?.into(),
            },
            "occurred" => Line::Occurred {
                at: fields.number()?,
                wall: fields.number()?,
                time: fields.number()?,
            },
            "copies" => Line::Copies {
                number: fields.number()?,
            },
            "copied" => Line::Copied {
                number: fields.number()?,
            },
            "restored" => Line::Restored {
                number: fields.number()?,
            },
            "fault" => {
                let text = text.strip_prefix("fault ").unwrap_or_default();
                return Ok(Line::Fault(text.into()));
            }
            "wrong" => {
                let text = text.strip_prefix("wrong ").unwrap_or_default();
                return Ok(Line::Wrong(text.into()));
            }
            _ => return Err(InvalidLine),
        };
        match fields.text() {
            Ok(_) => Err(InvalidLine),
            Err(InvalidLine) => Ok(line),
        }
    }
}

impl FromStr for Named {
    type Err = InvalidLine;

    fn from_str(text: &str) -> Result<Named, InvalidLine> {
        let mut fields = Fields(text.split('@'));
        Ok(Named {
            id: fields.id()?,
            due: fields.number()?,
            handler: fields.text()?.into(),
        })
    }
}
