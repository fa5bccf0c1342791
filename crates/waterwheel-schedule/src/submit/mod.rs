//! What is submitted: a job, and when it runs.

mod once;
mod options;
mod repeat;
mod retry;
mod submission;

pub use once::Once;
pub(crate) use options::Options;
pub use repeat::Repeat;
pub use retry::Retry;
