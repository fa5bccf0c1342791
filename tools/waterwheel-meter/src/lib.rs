//! A [`Timer`](waterwheel::Timer), looked at while it runs: five dials that turn like those of a water meter, rates, lateness and jobs.
//!
//! A program looks at a timer of its own by [`Meter`], and at the jobs of a scheduler by [`JobList::of`]. The program `waterwheel-meter` looks at a demo load:
//! `main`, `load/`, and `signals`, which end it.
//!
//! | file | question |
//! |---|---|
//! | `meter` | what does a program call? |
//! | `job` | what is shown of a job? |
//! | `scheduler` | which jobs of a scheduler are shown? |
//! | `asked` | how often is the program asked for its jobs? |
//! | `reading` | what is read from a timer at a time? |
//! | `history` | what were the rates, and how late did timers fire? |
//! | `view/` | what is drawn where? |
//! | `plain` | what is printed where no terminal is? |
//! | `screen` | how is the terminal taken, and given back? |
//! | `bars`, `format` | how does a number become blocks, or text? |
//! | `columns` | how does a text of the program's fit in its columns? |

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
