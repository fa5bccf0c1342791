//! Displays a running [`Timer`](waterwheel::Timer): five dials that turn like those of a water meter, rates, lateness and jobs.
//!
//! A program displays its own timer by [`Meter`], and the jobs of a scheduler by [`JobList::of`]. The program `waterwheel-meter` displays a demo load: `main`,
//! `load/`, and `signals`, which end it.
//!
//! | file | question |
//! |---|---|
//! | `meter` | what does a program call? |
//! | `job` | which data of a job is shown? |
//! | `scheduler` | which jobs of a scheduler are shown? |
//! | `asked` | how often is the program asked for its jobs? |
//! | `reading` | what does one reading of a timer contain? |
//! | `history` | what were the rates, and how late did timers fire? |
//! | `view/` | what is drawn where? |
//! | `plain` | what is printed without a terminal? |
//! | `screen` | how is the terminal taken over and restored? |
//! | `bars`, `format` | how does a number become blocks, or text? |
//! | `columns` | how does a program's text fit into its columns? |

#![forbid(unsafe_code)]

mod asked;
mod bars;
mod columns;
mod format;
mod history;
mod job;
mod meter;
mod plain;
mod reading;
#[cfg(test)]
mod sample;
mod scheduler;
mod screen;
mod view;

pub use job::{Job, JobList};
pub use meter::Meter;
