//! Copies of the file that the parent makes while the child runs, as an operator does.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use waterwheel_durable_sqlite::{EPOCHS_AHEAD, backup};

use crate::protocol::Line;
use crate::report::in_words;
use crate::schedule::Progress;

/// The fault of copying the file alone, without its WAL.
const WITHOUT_WAL: &str = "without-wal";
/// The fault of a copy that goes on with the ids of its file.
const SAME_IDS: &str = "same-ids";
/// Faults that are planted in the copies, not in the child.
pub(crate) const FAULTS: [&str; 2] = [WITHOUT_WAL, SAME_IDS];

/// Makes a copy as the command does, except for the fault.
fn copy(fault: &str, from: &Path, to: &Path) -> Result<(), String> {
    if fault == WITHOUT_WAL {
        return fs::copy(from, to).map(drop).map_err(in_words);
    }
    backup(from, to).map_err(in_words)?;
    if fault == SAME_IDS {
        let connection = Connection::open(to).map_err(in_words)?;
        let sql = format!(
            "DELETE FROM meta WHERE key = 'copied';
            UPDATE meta SET value = value - {EPOCHS_AHEAD} WHERE key = 'epoch'"
        );
        connection.execute_batch(&sql).map_err(in_words)?;
    }
    Ok(())
}

#[derive(Debug)]
pub(crate) struct Copies {
    file: PathBuf,
    /// The name of the planted fault. May be empty.
    fault: String,
    count: u64,
    /// The copy that is being made, or that the child has not confirmed yet.
    begun: Option<Begun>,
    pub(crate) made: Vec<Made>,
}

#[derive(Debug)]
struct Begun {
    number: u64,
    at: Instant,
    progress: Progress,
    thread: Option<JoinHandle<Result<(), String>>>,
    took: Duration,
}

/// A copy that was made.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) number: u64,
    pub(crate) took: Duration,
    /// The progress from the start of the copy until the child knew of its end.
    pub(crate) beside: Progress,
}

impl Copies {
    pub(crate) fn new(file: &Path, fault: String) -> Copies {
        Copies {
            file: file.to_owned(),
            fault,
            count: 0,
            begun: None,
            made: Vec::new(),
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.file.with_file_name(format!("copy-{number}.db"))
    }

    /// Begins a copy in a thread, so that the child's lines are read meanwhile. Returns the line to note.
    pub(crate) fn begin(&mut self, progress: &Progress) -> Line {
        self.count += 1;
        let number = self.count;
        let (fault, from, to) = (self.fault.clone(), self.file.clone(), self.path(number));
        self.begun = Some(Begun {
            number,
            at: Instant::now(),
            progress: *progress,
            thread: Some(std::thread::spawn(move || copy(&fault, &from, &to))),
            took: Duration::ZERO,
        });
        Line::Copies { number }
    }

    /// Returns the line that reports a finished copy, for the child to confirm. If the child is over, waits for a copy that is unfinished or
    /// unconfirmed.
    pub(crate) fn copied(&mut self, is_over: bool) -> Result<Option<Line>, String> {
        let Some(begun) = &mut self.begun else {
            return Ok(None);
        };
        let number = begun.number;
        let ended = |it: &mut JoinHandle<_>| is_over || it.is_finished();
        let Some(thread) = begun.thread.take_if(ended) else {
            return Ok(is_over.then_some(Line::Copied { number }));
        };
        let copied = thread.join().map_err(|_| "it panicked".to_owned());
        begun.took = begun.at.elapsed();
        match copied.and_then(|it| it) {
            Ok(()) => Ok(Some(Line::Copied { number })),
            Err(error) => {
                self.begun = None;
                Err(format!("copy {number} was not made: {error}"))
            }
        }
    }

    /// Notes a line: the child may have confirmed the copy.
    pub(crate) fn note(&mut self, line: &Line, progress: &Progress) {
        let Some(begun) = self.begun.take_if(|it| {
            let number = it.number;
            *line == Line::Copied { number }
        }) else {
            return;
        };
        self.made.push(Made {
            number: begun.number,
            took: begun.took,
            beside: progress.since(&begun.progress),
        });
    }

    /// Replaces the file by a copy, as the guide for operators describes, and deletes the others. Returns the line to note.
    pub(crate) fn restore(&mut self, number: u64) -> Result<Line, String> {
        // With its note, the file would refuse a faulty copy before the checker sees the effect.
        let note = (!self.fault.is_empty()).then_some("-acknowledged");
        for ending in ["", "-wal", "-shm"].into_iter().chain(note) {
            let mut name = self.file.clone().into_os_string();
            name.push(ending);
            match fs::remove_file(&name) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(in_words(error));
                }
                _ => {}
            }
        }
        fs::rename(self.path(number), &self.file).map_err(in_words)?;
        for made in std::mem::take(&mut self.made) {
            if made.number != number {
                fs::remove_file(self.path(made.number)).map_err(in_words)?;
            }
        }
        Ok(Line::Restored { number })
    }
}
