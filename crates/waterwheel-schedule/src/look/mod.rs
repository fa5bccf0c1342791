//! What is there to see: the jobs, what happens to them, and how many there were.

mod counts;
mod event;
mod job_id;
mod job_info;

pub use counts::Counts;
pub use event::Event;
pub(crate) use event::Hook;
pub use job_id::JobId;
pub use job_info::{JobInfo, JobStatus};
