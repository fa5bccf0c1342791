//! The observable state of one timer.

use std::sync::Arc;

use waterwheel_durable_core::store::{Due, Handle, Row};

use super::Process;

#[derive(Debug)]
pub(super) struct Timer {
    pub(super) handle: Handle,
    pub(super) key: Option<Arc<[u8]>>,
    /// The possible due times: more than one if the answer to a reschedule is not known.
    pub(super) dues: Vec<Due>,
    /// Whether it was redriven, so that no answer tells when it is due.
    pub(super) was_redriven: bool,
    /// Whether it was snoozed, so that it may be due at another time although it has not failed.
    pub(super) was_snoozed: bool,
    /// Whether its insert was answered.
    pub(super) is_durable: bool,
    pub(super) is_with_handler: bool,
    /// Whether it has ended, in this process or in an earlier one.
    pub(super) has_ended: Option<Process>,
    /// Whether a cancel was answered with "done".
    pub(super) is_cancelled: bool,
    /// Whether a cancel was not answered.
    pub(super) may_be_cancelled: bool,
    /// Whether it was given up at its last end.
    pub(super) was_given_up: bool,
    /// The number of its failures.
    pub(super) failures: u32,
    /// The minimum number of its failures, by what was written.
    pub(super) least_failures: u32,
    /// The number of its failures before its last delivery.
    pub(super) written_failures: u32,
    /// The time before which it is not retried.
    pub(super) not_before: Option<i64>,
    /// The times between which it must be retried. The commit tells the exact one.
    pub(super) retried_within: Option<(i64, i64)>,
    /// Whether and when it was archived as it ended successfully.
    pub(super) archived: Archived,
    /// Whether it and its key are certainly gone.
    pub(super) has_no_key: bool,
    /// The minimum and maximum number of earlier processes in which its start was noted, since the last orderly end.
    pub(super) noted: (u32, u32),
    /// Whether its start was, or should be, noted in this process.
    pub(super) is_noted: bool,
    /// Whether it was delivered after its start was noted.
    pub(super) was_started: bool,
    /// Whether its start is being noted.
    pub(super) is_starting: bool,
}

/// Whether a timer that has ended successfully is archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Archived {
    /// It is not known whether it is archived.
    Unknown,
    /// It is not archived.
    Not,
    /// It was archived at this time.
    At(Settled),
}

/// When a timer was archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// The time in microseconds of the wall clock.
    pub wall: i64,
    /// How often the complete archive of its handler had to expire before.
    pub cleared: u64,
}

impl Timer {
    pub(super) fn is_over(&self) -> bool {
        self.has_ended.is_some() || self.is_cancelled || self.may_be_cancelled
    }

    /// Notes that it has moved, which deletes its noted starts.
    pub(super) fn was_never_started(&mut self) {
        self.noted = (0, 0);
        (self.is_noted, self.was_started, self.is_starting) = (false, false, false);
    }

    /// Notes that it is to move, which may delete its noted starts.
    pub(super) fn may_have_moved(&mut self) {
        (self.noted.0, self.was_started) = (0, false);
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_durable && !self.is_with_handler && !self.is_over()
    }

    /// Whether it may be due at the time in a row. That is unknown if it was redriven, or has failed and the process has ended since.
    pub(super) fn may_be_due(&self, row: &Row) -> bool {
        let is_retry = (row.failures > 0 || self.was_snoozed)
            && self
                .not_before
                .is_none_or(|at| at == row.due.as_millis() * 1_000);
        !self.is_durable || self.was_redriven || is_retry || self.dues.contains(&row.due)
    }

    /// The time since which it is certainly due, in microseconds. `None` if unknown: it was redriven, or has failed and the process has ended since.
    pub(super) fn certain_due(&self) -> Option<i64> {
        if self.was_redriven {
            return None;
        }
        match self.failures {
            0 if !self.was_snoozed => self.dues.iter().max().map(|due| due.as_millis() * 1_000),
            _ => self.not_before,
        }
    }
}
