//! What is a submitter left with? A handle, and errors.

mod error;
mod job_handle;

pub(crate) use error::Refusal;
pub use error::{JobError, Panic, SubmitError};
pub use job_handle::JobHandle;
