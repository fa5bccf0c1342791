//! What becomes of a child's disk, and what must be seen before the next thing is done.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::log::Line;

/// A step for whose end there is no evidence after so long has failed, even on a busy machine.
const LONGEST: Duration = Duration::from_secs(90);

/// What has happened so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Inserts that were answered with a new timer.
    pub(crate) created: u64,
    /// Inserts that were refused for want of space.
    pub(crate) full: u64,
    /// Cancels, reschedules and redrives that were answered.
    pub(crate) answered: u64,
    pub(crate) delivered: u64,
    /// Deliveries whose end was committed.
    pub(crate) settled: u64,
    /// Copies of the file that were made.
    pub(crate) copies: u64,
}

impl Progress {
    pub(crate) fn note(&mut self, line: &Line) {
        match line {
            Line::Inserted { is_new: true, .. } => self.created += 1,
            Line::Full { .. } => self.full += 1,
            Line::Answered { .. } => self.answered += 1,
            Line::Begin { .. } => self.delivered += 1,
            Line::CommitReturned { settled, .. } => self.settled += settled,
            Line::Copied { .. } => self.copies += 1,
            _ => {}
        }
    }

    pub(crate) fn since(&self, before: &Progress) -> Progress {
        Progress {
            created: self.created - before.created,
            full: self.full - before.full,
            answered: self.answered - before.answered,
            delivered: self.delivered - before.delivered,
            settled: self.settled - before.settled,
            copies: self.copies - before.copies,
        }
    }

    /// Whether each of these is at least as much.
    fn has(&self, min: &Progress) -> bool {
        self.created >= min.created
            && self.full >= min.full
            && self.answered >= min.answered
            && self.delivered >= min.delivered
            && self.settled >= min.settled
            && self.copies >= min.copies
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// At least so much more is seen. The name is of the step in words.
    Until(&'static str, Progress),
    /// Another's file takes all space that is left.
    Fill,
    /// It is gone.
    Free,
    /// A copy of the child's file is begun.
    Copy,
    Kill,
    Stop,
}

/// What is to be done with the child.
#[derive(Debug)]
pub(crate) enum Next {
    Wait,
    /// It is handed this line.
    Command(&'static str),
    Copy,
    Kill,
    Stop,
    /// There was no evidence in time: what was awaited, and what was seen.
    Failed(String),
}

/// The file that takes space.
#[derive(Debug, Clone)]
pub(crate) enum Foreign {
    /// This one.
    File(PathBuf),
    /// The child's disk is in its memory.
    InChild,
}

/// The steps of a round, in order.
#[derive(Debug)]
pub(crate) struct Script {
    steps: VecDeque<Step>,
    foreign: Foreign,
    before: Progress,
    since: Instant,
    /// What was seen in each step that had to see something.
    pub(crate) progress: Vec<(&'static str, Progress)>,
    /// How many bytes another's file had at most.
    pub(crate) filled: u64,
}

impl Script {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>, foreign: &Foreign) -> Script {
        Script {
            steps: steps.into_iter().collect(),
            foreign: foreign.clone(),
            before: Progress::default(),
            since: Instant::now(),
            progress: Vec::new(),
            filled: 0,
        }
    }

    /// Says what is next, by what was seen since the start of the round.
    pub(crate) fn go_on(&mut self, progress: &Progress) -> Next {
        let Some(step) = self.steps.front() else {
            return Next::Wait;
        };
        let next = match step {
            Step::Until(name, min) => {
                let now = progress.since(&self.before);
                if now.has(min) {
                    self.progress.push((name, now));
                    Next::Wait
                } else if self.since.elapsed() > LONGEST {
                    let text = format!("{name}: {now:?} was seen, and not {min:?}");
                    self.steps.clear();
                    return Next::Failed(text);
                } else {
                    return Next::Wait;
                }
            }
            Step::Fill | Step::Free => match self.foreign.change(matches!(step, Step::Fill)) {
                Ok(Changed::By(length)) => {
                    self.filled = self.filled.max(length);
                    Next::Wait
                }
                Ok(Changed::ByCommand(command)) => Next::Command(command),
                Err(error) => Next::Failed(format!("the foreign file: {error}")),
            },
            Step::Copy => Next::Copy,
            Step::Kill => Next::Kill,
            Step::Stop => Next::Stop,
        };
        self.steps.pop_front();
        self.before = *progress;
        self.since = Instant::now();
        next
    }
}

enum Changed {
    /// The file is so long.
    By(u64),
    /// The child is to do it.
    ByCommand(&'static str),
}

impl Foreign {
    /// Takes it away, if it was left.
    pub(crate) fn remove(&self) {
        if let Foreign::File(path) = self {
            let _ = fs::remove_file(path);
        }
    }

    fn change(&self, fills: bool) -> std::io::Result<Changed> {
        let path = match self {
            Foreign::InChild => return Ok(Changed::ByCommand(if fills { "fill" } else { "free" })),
            Foreign::File(path) => path,
        };
        if !fills {
            fs::remove_file(path)?;
            return Ok(Changed::By(0));
        }
        let mut file = File::create(path)?;
        // Random, so that nothing is compressed.
        let piece: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..))
            .take(65_536)
            .collect();
        let mut length = 0;
        for size in [65_536, 4_096, 1] {
            loop {
                match file.write(&piece[..size]) {
                    Ok(0) => break,
                    Ok(written) => length += written as u64,
                    Err(error) if is_full(error.kind()) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        match file.sync_all() {
            Err(error) if !is_full(error.kind()) => Err(error),
            _ => Ok(Changed::By(length)),
        }
    }
}

fn is_full(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
