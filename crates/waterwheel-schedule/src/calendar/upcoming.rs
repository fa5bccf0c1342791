use std::iter::FusedIterator;

use jiff::Timestamp;

use super::schedule::Schedule;

/// The instants of a schedule, one after the other: [`Schedule::upcoming`].
#[derive(Debug, Clone)]
#[must_use = "an iterator does nothing until it is asked"]
pub struct Upcoming {
    schedule: Schedule,
    /// What the next instant is after. `None` after the last.
    after: Option<Timestamp>,
}

impl Upcoming {
    pub(super) fn new(schedule: Schedule, after: Timestamp) -> Upcoming {
        Upcoming {
            schedule,
            after: Some(after),
        }
    }
}

impl Iterator for Upcoming {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        self.after = self.schedule.next_after(self.after?);
        self.after
    }
}

impl FusedIterator for Upcoming {}
