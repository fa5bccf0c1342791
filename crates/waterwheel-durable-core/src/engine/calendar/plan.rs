//! The engine's plan of a calendar, and its progress when the rules of the time zone have changed or the clock was wrong.

use std::fmt;
use std::sync::Arc;

use crate::store::Due;
use serde::{Deserialize, Serialize};

/// A clock more than this many milliseconds behind a cursor is not waited for: either the clock was wrong when the cursor was written, or it is wrong now.
const DAY: i64 = 86_400_000;

/// The start of 2025, before any calendars existed: an earlier cursor was written with a clock that had not been set.
pub const FIRST: Due = Due::from_millis(1_735_689_600_000);

/// The times of a calendar's occurrences. The engine knows nothing of time zones, so a simulator needs none.
pub trait Occurrences: fmt::Debug + Send + Sync {
    /// The first occurrence after this time, as a whole second in the range of [ids](crate::store::Id::of_occurrence): from 1970 to the year 2500. `None` if
    /// there are no more.
    fn next_after(&self, after: Due) -> Option<Due>;

    /// The local time at this instant, in milliseconds since local 1970.
    fn civil(&self, at: Due) -> i64;

    /// The instant at which a wall clock shows this local time. If there are two, the one nearer to `near`.
    fn instant(&self, civil: i64, near: Due) -> Due;

    /// A number that changes with the time zone rules that `civil` follows, both at this time and for some years after it.
    fn rules(&self, from: Due) -> u64;

    /// The stored form of the calendar. Only this type reads it, at the next opening.
    fn stored(&self, progress: &Progress) -> Arc<[u8]>;
}

/// The timers that a calendar delivers, and when.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The definition as text. Plans with equal definitions are equal.
    pub definition: Arc<str>,
    /// The part of the definition that the times of the occurrences depend on.
    pub times: Arc<str>,
    /// The handler that each occurrence is delivered to.
    pub handler: Arc<str>,
    /// The payload of each occurrence.
    pub payload: Arc<[u8]>,
    /// The policy for occurrences whose time has passed unnoticed.
    pub misfire: Misfire,
    /// The times of the occurrences.
    pub occurrences: Arc<dyn Occurrences>,
}

/// The misfire policy of a calendar: what to do with missed occurrences, those that are more than a minute late when the
/// service notices them, because it was down or its store refused.
///
/// An occurrence that is at most a minute late counts as on time. If the first occurrence that was not noticed is on
/// time, all of them are delivered, with any of these policies. If it is late, [`Once`](Misfire::Once) and
/// [`CatchUpTo`](Misfire::CatchUpTo) treat the on-time occurrences that follow like the late ones.
///
/// The default is `Once`, as for a `CronTrigger` of Quartz: a durable calendar promises its occurrences across
/// downtime, so a nightly job still runs when the night was missed, and a long downtime does not end in a burst. (The
/// default of `waterwheel-schedule` is `Skip`, because its jobs miss runs only while the process is busy or suspended.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Misfire {
    /// Skips the late occurrences, and delivers the on-time ones.
    Skip,
    /// Coalesces the missed occurrences: delivers only the last of them, whether it is late or on time.
    #[default]
    Once,
    /// Delivers the last `n` of them, whether they are late or on time; from 1 to `MISFIRE_LIMIT`, 1 000.
    CatchUpTo(u32),
}

/// How late an occurrence may be noticed, in milliseconds, and still count as on time: a busy machine, a store that refuses for a while or a quick restart is no
/// misfire.
pub const MISSED_AFTER: i64 = 60_000;

/// The progress of a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The calendar's part of the [ids](crate::store::Id::of_occurrence) of its occurrences. It is replaced whenever the cursor goes back, so that no id is
    /// used twice.
    pub number: u32,
    /// The calendar's position.
    pub cursor: Cursor,
}

/// The position of a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// All occurrences up to and including this time were filed or passed over.
    pub at: Due,
    /// The local time at `at`.
    pub civil: i64,
    /// The time zone rules that `civil` was computed with.
    pub rules: u64,
    /// The previous `at`, put aside when the clock was found to be more than a day behind it. It is used again once the clock has passed it.
    pub aside: Option<Due>,
    /// The last occurrence that was filed.
    pub last: Option<Due>,
}

impl Cursor {
    /// The cursor of a calendar that begins at this time, with nothing missed.
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

    /// The cursor from which to look for occurrences now.
    ///
    /// - **The clock is behind the cursor.** If by a day or less, the calendar waits for it. If by more, one of the two is wrong, but which is unknown. So the
    ///   cursor is put aside and the calendar follows the clock. Once the clock has passed the old cursor, that counts again. So a machine that starts in 1970,
    ///   and is set to the present a minute later, finds the cursor of its last run.
    /// - **The cursor was written before the clock was first set**, for example in 1970: nothing has been missed since.
    /// - **The time zone rules have changed.** No local time that was already reached under the old rules occurs again under the new ones.
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

/// The result of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// The calendar is new.
    Created,
    /// The calendar replaces one with the same name. It starts from now, or continues from where the old one was if the
    /// times are the same.
    Replaced,
    /// An identical calendar exists.
    Unchanged,
}

/// 64-bit FNV-1a, which gives the same hash on every machine and in every version, as stored values require. Nothing that a user could forge depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Hash(u64);

impl Default for Hash {
    /// The hash of the empty input.
    fn default() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    /// Adds bytes to the hash.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Adds a number to the hash.
    pub fn number(&mut self, number: i64) {
        self.bytes(&number.to_le_bytes());
    }

    /// The hash of everything added.
    #[must_use]
    pub fn finish(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_its_inventors() {
        // From the test vectors of the FNV page.
        for (text, expected) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let mut hash = Hash::default();
            hash.bytes(text.as_bytes());
            assert_eq!(hash.finish(), expected, "{text}");
        }
    }
}
