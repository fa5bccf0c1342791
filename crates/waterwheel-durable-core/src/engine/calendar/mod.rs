//! Which occurrence of a calendar becomes a timer, and when?
//!
//! | file | question |
//! |---|---|
//! | `plan` | what is a calendar to the engine? |
//! | `cursor` | how far has one come, if its zone's rules have changed, or the clock was wrong? |
//! | `search` | which occurrences were the last ones, of millions? |
//! | `calendars` | which calendars are there, and what does each wait for? |
//! | `requests` | what becomes of a declaration, a removal, and of what the store has at the opening? |
//! | `steps` | what is written of a calendar, and what follows from that? |
//! | `hash` | which number is the same on each machine? |
//! | `decide` | which occurrences are filed now, and when is to be looked again? |
//!
//! Nothing is filed ahead. When the wall clock reaches an occurrence, one step writes it as a timer, due at its time, and moves the cursor of the calendar: no
//! crash takes the two apart. So there is one place that decides what becomes of an occurrence that was missed, and a calendar that is changed or removed
//! leaves nothing behind.

mod calendars;
mod cursor;
mod decide;
mod hash;
mod plan;
mod requests;
mod search;
mod steps;
#[cfg(test)]
mod tests;

pub(super) use calendars::Calendars;
pub use calendars::Declared;
pub use cursor::FIRST;
pub use decide::{Decision, decide};
pub use hash::Hash;
pub use plan::{Cursor, MISSED_AFTER, Misfire, Occurrences, Plan, Progress};
pub use requests::{Info, Stored};
pub use steps::SETTINGS;
