//! Calendars as users define them, and their stored form.
//!
//! | file | question |
//! |---|---|
//! | `definition` | how does a user define a calendar? |
//! | `error` | what is wrong with a definition? |
//! | `cron` | when are the occurrences of an expression in a zone? |
//! | `zone` | what is the local time in a zone, and by which rules? |
//! | `info` | what can be seen of an existing calendar? |
//! | `stored` | how is a calendar stored, as JSON? |
//!
//! The engine decides when occurrences become timers: see [`engine::calendar`](waterwheel_durable_core::engine::calendar).

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
