//! Scripts, the two timers that play them, and the comparison.
//!
//! | file | contents |
//! |---|---|
//! | `times` | the common interface of tokio's timers and ours |
//! | `script` | the steps of a script by hand |
//! | `when` | times from a seed: deadlines, and where the clock stops |
//! | `author` | scripts by hand from a seed |
//! | `book` | a script's own record of a timer: its tick, and its place among equals |
//! | `play` | plays a script by hand, and notes the observations after each step |
//! | `compare` | what must be equal, and the exceptions |
//! | `seeds` | the seeds that are played, and the report of those that differ |
//!
//! A script by hand polls, resets and drops each future from the runtime's main task, with a waker
//! that notes when it is woken. A script of tasks (`tests/time/beside_tokio/tasks.rs`) awaits.
//!
//! # The place among equals
//!
//! Timers of one tick are woken in order of filing. The two differ slightly in when they file a timer:
//!
//! | | tokio | ours |
//! |---|---|---|
//! | first poll | files | files |
//! | reset of a pending timer to earlier | files | files |
//! | reset before the first poll, or after the timer has fired | files | files at the next poll |
//! | reset of a pending timer to later | files when its old slot comes up | likewise, at other slots |
//! | and then to earlier, but not before its old slot | files | as above |
//!
//! So `book` counts the filings of both. Tokio's wakes must be in the order of tokio's filings and ours in the
//! order of ours; if no other timer was filed between such a reset and the poll, which is nearly always the
//! case, these are the same. The last two lines are the one exception: a timer that was reset to later may come
//! anywhere among those of its tick, until it is filed anew.
//!
//! Wakes of a timer that was reset after it was ready are not compared until it is polled again: tokio keeps the
//! last waker there, and wakes it.

mod author;
mod book;
mod compare;
mod play;
mod script;
mod seeds;
mod times;
mod when;

pub(crate) use author::{Kind, write};
pub(crate) use compare::{Difference, differences};
pub(crate) use play::{play, settle};
pub(crate) use script::{Missed, Op, millis};
pub(crate) use seeds::{check, number};
pub(crate) use times::{Ours, Times, Tokio};
pub(crate) use when::{DAY, END, When};
