//! The knowledge about one timer.

use std::sync::Arc;

use waterwheel_durable_core::store::{Due, Handle, Row};

use super::Process;

#[derive(Debug)]
pub(super) struct Timer {
    pub(super) handle: Handle,
    pub(super) key: Option<Arc<[u8]>>,
    /// When it may be due: more than one if the answer to a reschedule is not known.
    pub(super) dues: Vec<Due>,
    /// It is due when it was redriven, which no answer says.
    pub(super) was_redriven: bool,
    /// Its insert was answered.
    pub(super) is_durable: bool,
    pub(super) is_with_handler: bool,
    /// It came to its end in this process, or in one before.
    pub(super) has_ended: Option<Process>,
    /// A cancel was answered with "done".
    pub(super) is_cancelled: bool,
    /// A cancel was not answered.
    pub(super) may_be_cancelled: bool,
    /// It was given up when it came to its end last.
    pub(super) was_given_up: bool,
    /// How often it has failed,
    pub(super) failures: u32,
    /// and at least, as far as that was written.
    pub(super) least_failures: u32,
    /// How often it had failed before its last delivery.
    pub(super) written_failures: u32,
    /// It is not tried again before.
    pub(super) not_before: Option<i64>,
    /// It was to be tried again between these times. The commit says when.
    pub(super) retried_within: Option<(i64, i64)>,
    /// Whether it was archived as it ended well, and when.
    pub(super) archived: Archived,
    /// It is certainly gone, and its key with it.
    pub(super) has_no_key: bool,
    /// In how many processes before this one its start was noted, since the last one that has ended in order: at least, and at most.
    pub(super) noted: (u32, u32),
    /// It was, or was to be, in this one.
    pub(super) is_noted: bool,
    /// It was delivered after that.
    pub(super) was_started: bool,
    /// It is being noted.
    pub(super) is_starting: bool,
}

/// Whether a timer that has ended well is archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Archived {
    /// It is not known.
    Unknown,
    /// Not at all.
    Not,
    /// Then.
    At(Settled),
}

/// When a timer was archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// In microseconds of the wall clock.
    pub wall: i64,
    /// How often all that was archived of its handler was to expire before.
    pub cleared: u64,
}

impl Timer {
    pub(super) fn is_over(&self) -> bool {
        self.has_ended.is_some() || self.is_cancelled || self.may_be_cancelled
    }

    /// It has moved: what was noted of its starts is gone.
    pub(super) fn was_never_started(&mut self) {
        self.noted = (0, 0);
        (self.is_noted, self.was_started, self.is_starting) = (false, false, false);
    }

    /// It is to move: what was noted of its starts may be gone.
    pub(super) fn may_have_moved(&mut self) {
        (self.noted.0, self.was_started) = (0, false);
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_durable && !self.is_with_handler && !self.is_over()
    }

    /// Whether it is due as a row says. That is not known if it was redriven, or has failed and the process has ended since.
    pub(super) fn may_be_due(&self, row: &Row) -> bool {
        let is_retry = row.failures > 0
            && self
                .not_before
                .is_none_or(|at| at == row.due.as_millis() * 1_000);
        !self.is_durable || self.was_redriven || is_retry || self.dues.contains(&row.due)
    }

    /// Since when it is certainly due, in microseconds. `None` if that is not known: it was redriven, or it has failed and the process has ended since.
    pub(super) fn certain_due(&self) -> Option<i64> {
        if self.was_redriven {
            return None;
        }
        match self.failures {
            0 => self.dues.iter().max().map(|due| due.as_millis() * 1_000),
            _ => self.not_before,
        }
    }
}
