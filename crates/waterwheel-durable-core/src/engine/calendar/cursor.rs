//! How far has a calendar come, if its zone's rules have changed, or the clock was wrong?

use crate::store::Due;

use super::plan::{Cursor, Occurrences};

/// A clock that is so many milliseconds behind a cursor is not waited for: the cursor was written by a clock that was wrong, or this one is.
const DAY: i64 = 86_400_000;

/// 2025, before there were any calendars: a cursor before it was written by a clock that had not been set.
pub const FIRST: Due = Due::from_millis(1_735_689_600_000);

impl Cursor {
    /// A calendar that begins at this time: nothing was missed.
    #[must_use]
    pub fn starting(at: Due, of: &dyn Occurrences) -> Cursor {
        Cursor {
            at,
            civil: of.civil(at),
            rules: of.rules(at),
            aside: None,
            last: None,
        }
    }

    pub(super) fn moved(self, at: Due, of: &dyn Occurrences) -> Cursor {
        Cursor {
            aside: self.aside,
            last: self.last,
            ..Cursor::starting(at, of)
        }
    }

    /// From where on the calendar is to be looked at now.
    ///
    /// - **The clock is behind it.** By a day or less: it is waited for. By more: one of the two is wrong, and it is not known which. So it is put aside, and
    ///   the calendar goes by the clock as it is. Once the clock is past what was put aside, that counts again. A machine that starts in 1970, and is set to
    ///   the present a minute later, so finds the cursor of its last run.
    /// - **It was written before the clock was set** for the first time, in 1970 for example: nothing was missed since.
    /// - **The rules of the zone have changed.** No time that the clock on the wall has shown by the old rules comes again by the new ones.
    pub(super) fn as_of(mut self, now: Due, of: &dyn Occurrences) -> Cursor {
        if let Some(aside) = self.aside.filter(|aside| *aside <= now) {
            self.aside = None;
            self = self.moved(self.at.max(aside), of);
        }
        let ahead = self.at.as_millis().saturating_sub(now.as_millis());
        if ahead > DAY {
            if FIRST <= self.at {
                self.aside = Some(self.at);
            }
            self.moved(now, of)
        } else if self.at < FIRST && FIRST <= now {
            self.moved(now, of)
        } else if self.rules != of.rules(self.at) {
            let there = of.instant(self.civil, self.at);
            self.moved(self.at.max(there), of)
        } else {
            self
        }
    }
}
