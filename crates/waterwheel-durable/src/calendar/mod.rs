//! Calendars as users define them, and their stored form.
//!
//! | file | question |
//! |---|---|
//! | `definition` | what does a user say of a calendar? |
//! | `error` | what is wrong with it? |
//! | `cron` | when are the occurrences of a pattern in a zone? |
//! | `zone` | what does the clock on a zone's wall show, and by which rules? |
//! | `info` | what is seen of one that is there? |
//! | `stored` | what is kept of it, as JSON? |
//!
//! For what becomes of the occurrences, see [`engine::calendar`](waterwheel_durable_core::engine::calendar).

mod cron;
mod definition;
mod error;
mod info;
mod stored;
#[cfg(test)]
mod tests;
mod zone;

pub use definition::Calendar;
pub use error::{CalendarError, CalendarField};
pub use info::CalendarInfo;
pub(crate) use stored::read;
