//! What is submitted: a job, when it runs, and what becomes of it in bad times.

mod context;
mod missed;
mod on_error;
mod once;
mod options;
mod outcome;
mod repeat;
mod retry;
mod submission;
pub(crate) mod work;

pub use context::Context;
pub use missed::Missed;
pub use on_error::{BackOff, OnError};
pub use once::Once;
pub(crate) use options::Options;
pub use outcome::Outcome;
pub use repeat::Repeat;
pub use retry::Retry;
