use std::fmt;
use std::sync::Arc;

use crate::store::Due;

/// When a calendar's occurrences are. The engine knows no zones, so a simulator needs none.
pub trait Occurrences: fmt::Debug + Send + Sync {
    /// The first occurrence after this time, in a whole second that [ids](crate::store::Id::of_occurrence) have: from 1970 to the year 10 000. `None` if there is
    /// none any more.
    fn next_after(&self, after: Due) -> Option<Due>;

    /// What a clock on the wall shows there at this time: milliseconds since it showed the start of 1970.
    fn civil(&self, at: Due) -> i64;

    /// When a clock on the wall shows that. Of two times, the one that is nearer to `near`.
    fn instant(&self, civil: i64, near: Due) -> Due;

    /// A number that changes with the rules which `civil` follows, those of this time and of some years after it.
    fn rules(&self, from: Due) -> u64;

    /// What the store keeps of the calendar. Nothing but this reads it, at the next opening.
    fn stored(&self, progress: &Progress) -> Arc<[u8]>;
}

/// What is delivered by a calendar, and when.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The definition as text. Plans that have the same one are the same.
    pub definition: Arc<str>,
    /// What of it the times of the occurrences depend on.
    pub times: Arc<str>,
    /// The handler that each occurrence is delivered to.
    pub handler: Arc<str>,
    /// What the handler is handed each time.
    pub payload: Arc<[u8]>,
    /// What becomes of occurrences whose time has passed unnoticed.
    pub misfire: Misfire,
    /// When they are.
    pub occurrences: Arc<dyn Occurrences>,
}

/// What becomes of occurrences if the first of them is more than a [minute](MISSED_AFTER) late when it is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfire {
    /// The last one is delivered, for all of them.
    Once,
    /// The last so many are delivered.
    All(u32),
    /// Those that are late are passed over.
    Skip,
}

/// So late, in milliseconds, may an occurrence be noticed and count as in time: a busy machine, a store that refuses for a while or a quick restart is no
/// misfire.
pub const MISSED_AFTER: i64 = 60_000;

/// What the engine keeps of a calendar beside its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The calendar's part of the [ids](crate::store::Id::of_occurrence) of its occurrences. It is another one whenever the cursor goes back, so that no id is
    /// used twice.
    pub number: u32,
    /// How far it has come.
    pub cursor: Cursor,
}

/// How far a calendar has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// What was to come up to this time, and at it, was filed or passed over.
    pub at: Due,
    /// What the clock on the wall showed then,
    pub civil: i64,
    /// by these rules.
    pub rules: u64,
    /// How far the calendar had come when the clock was found to be more than a day behind. It counts again once the clock is past it.
    pub aside: Option<Due>,
    /// The last occurrence that was filed.
    pub last: Option<Due>,
}
