//! The log's knowledge about one timer.

use crate::protocol::RETRY_DELAYS_MILLIS;

/// A line's number.
pub(super) type At = u64;

/// So long after the wall clock was set back, or a namespace was paused, a handler may still read the time, or begin, that was about to be called before. A thread that has to wait
/// for a processor takes so long at most.
pub(super) const ON_ITS_WAY_MICROS: u64 = 3_000_000;

#[derive(Debug, Clone, Default)]
pub(super) struct Timer {
    pub(super) handler: String,
    pub(super) key: Option<String>,
    /// The request that inserted it. Not known of one that only an "existing" has named.
    pub(super) insert: Option<u64>,
    /// The due time in its handle, in milliseconds.
    pub(super) handle_due: i64,
    /// When it may be due, by what was asked for.
    pub(super) wanted: Vec<Wanted>,
    pub(super) last: Option<Last>,
    /// Where the log has the failure of each attempt.
    pub(super) failures: [At; RETRY_DELAYS_MILLIS.len()],
    /// When a cancel was answered with "done".
    pub(super) cancelled: Option<At>,
    /// A cancel was not answered before a kill.
    pub(super) may_be_cancelled: bool,
    /// Cancels that wait for their answers.
    pub(super) cancels: u32,
    /// A request was answered with "not found".
    pub(super) not_found: Option<At>,
    /// It may have been redriven since its last delivery.
    pub(super) may_be_redriven: bool,
    /// It may have been redriven once. From then on it has no key, and no line says when it is due.
    pub(super) was_dead: bool,
    /// The last line about a redrive of it.
    pub(super) redriven: At,
    /// The lowest and the highest attempt that may be next: it had deliveries while the copy was made that is in the place of the file.
    pub(super) copied: Option<(u32, u32)>,
}

/// A due time that was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) request: u64,
    /// In microseconds.
    pub(super) due: i64,
    pub(super) sent: At,
    /// If it was done at all, then before this line.
    pub(super) done_by: Option<At>,
    pub(super) is_done: bool,
}

/// The last that a handler has said of a timer.
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
    /// It is tried again.
    Failed,
    Dead,
}

/// Up to where the ends of a round are known to be settled.
///
/// A handler's end is queued for the store when its future returns, and the store's commits are in the order of the queue. So a later request of the same thread,
/// answered from a commit, proves that the end is on disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Seal {
    /// For each thread, the line of its latest request that was answered from a commit.
    threads: Vec<At>,
    /// A shutdown writes all.
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

    /// Whether it is to be delivered for certain.
    pub(super) fn is_owed(&self) -> bool {
        !self.may_be_cancelled() && !self.may_be_redriven && !self.has_ended()
    }

    /// Whether its last delivery ended for good, as the handler saw it.
    pub(super) fn has_ended(&self) -> bool {
        let over = |last: Last| matches!(last.state, State::Well | State::Dead);
        self.last.is_some_and(over) && !self.may_be_redriven
    }

    /// Whether it is certain that it has its key.
    pub(super) fn has_key(&self) -> bool {
        !self.may_be_cancelled() && !self.has_ended() && !self.was_dead
    }
}

/// In milliseconds.
pub(super) fn rounded_up(micros: i64) -> i64 {
    micros.div_euclid(1_000) + i64::from(micros.rem_euclid(1_000) > 0)
}
