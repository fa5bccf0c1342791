use std::iter::FusedIterator;

use jiff::Timestamp;

use super::schedule::Schedule;

/// An iterator over the instants of a schedule. Returned by [`Schedule::upcoming`].
#[derive(Debug, Clone)]
#[must_use = "iterators are lazy and do nothing unless consumed"]
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
