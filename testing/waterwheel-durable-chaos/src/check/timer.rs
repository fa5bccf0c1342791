//! The log's knowledge about one timer.

use crate::protocol::RETRY_DELAYS_MILLIS;

/// A line's number.
pub(super) type At = u64;

/// How long after a move of the wall clock or a pause a handler that was about to be called may still read the earlier time, or begin. A thread that waits for a processor takes no
/// longer.
pub(super) const ON_ITS_WAY_MICROS: u64 = 3_000_000;

#[derive(Debug, Clone, Default)]
pub(super) struct Timer {
    pub(super) handler: String,
    pub(super) key: Option<String>,
    /// The request that inserted the timer. Unknown if only an "existing" answer has named it.
    pub(super) insert: Option<u64>,
    /// The due time in its handle, in milliseconds.
    pub(super) handle_due: i64,
    /// The due times that it may have, by what was requested.
    pub(super) wanted: Vec<Wanted>,
    pub(super) last: Option<Last>,
    /// The line of the failure of each attempt.
    pub(super) failures: [At; RETRY_DELAYS_MILLIS.len()],
    /// When a cancel was answered with "done".
    pub(super) cancelled: Option<At>,
    /// Whether a cancel was not answered before a kill.
    pub(super) may_be_cancelled: bool,
    /// The number of cancels that wait for their answers.
    pub(super) cancels: u32,
    /// The line of an answer "not found".
    pub(super) not_found: Option<At>,
    /// Whether the timer may have been redriven since its last delivery.
    pub(super) may_be_redriven: bool,
    /// Whether the timer may ever have been redriven. From then on it has no key, and no line tells when it is due.
    pub(super) was_dead: bool,
    /// The last line about a redrive of the timer.
    pub(super) redriven: At,
    /// The lowest and the highest attempt that may be next, if the timer had deliveries while the restored copy was made.
    pub(super) copied: Option<(u32, u32)>,
}

/// A requested due time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) request: u64,
    /// The due time in microseconds.
    pub(super) due: i64,
    pub(super) sent: At,
    /// The line before which the request was done, if at all.
    pub(super) done_by: Option<At>,
    pub(super) is_done: bool,
}

/// The last report of a handler about a timer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last {
    pub(super) state: State,
    pub(super) attempt: u32,
    pub(super) round: u64,
    /// When it began, in microseconds since the child's start.
    pub(super) begun_at: u64,
    pub(super) line: At,
    pub(super) thread: usize,
    pub(super) wall: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Begun,
    Well,
    /// The attempt failed, and another one follows.
    Failed,
    Dead,
}

/// How much of a round is known to be settled.
///
/// A handler's end is queued for the store when its future returns, and the store commits in the order of the queue. So a later request of the same thread,
/// answered from a commit, proves that the end is on disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Seal {
    /// For each thread, the line of its latest request that was answered from a commit.
    threads: Vec<At>,
    /// Whether a shutdown has written everything.
    pub(super) is_all: bool,
}

impl Seal {
    pub(super) fn answered(&mut self, thread: usize, sent: At) {
        if self.threads.len() <= thread {
            self.threads.resize(thread + 1, 0);
        }
        self.threads[thread] = self.threads[thread].max(sent);
    }

    pub(super) fn covers(&self, last: &Last) -> bool {
        last.state != State::Begun && self.covers_end(last.line, last.thread)
    }

    pub(super) fn covers_end(&self, line: At, thread: usize) -> bool {
        self.is_all || self.threads.get(thread).is_some_and(|sent| line < *sent)
    }
}

impl Timer {
    pub(super) fn may_be_cancelled(&self) -> bool {
        self.cancelled.is_some() || self.may_be_cancelled || self.cancels > 0
    }

    /// Whether it certainly has to be delivered.
    pub(super) fn is_owed(&self) -> bool {
        !self.may_be_cancelled() && !self.may_be_redriven && !self.has_ended()
    }

    /// Whether its last delivery ended for good, as the handler saw it.
    pub(super) fn has_ended(&self) -> bool {
        let over = |last: Last| matches!(last.state, State::Well | State::Dead);
        self.last.is_some_and(over) && !self.may_be_redriven
    }

    /// Whether it certainly has its key.
    pub(super) fn has_key(&self) -> bool {
        !self.may_be_cancelled() && !self.has_ended() && !self.was_dead
    }
}

/// Rounds up to milliseconds.
pub(super) fn rounded_up(micros: i64) -> i64 {
    micros.div_euclid(1_000) + i64::from(micros.rem_euclid(1_000) > 0)
}
