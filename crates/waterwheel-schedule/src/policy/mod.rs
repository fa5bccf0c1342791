//! What becomes of a job in bad times: of runs that were missed, and of runs that failed. Values alone.

mod missed;
mod on_error;

pub use missed::Missed;
pub use on_error::{BackOff, OnError};
