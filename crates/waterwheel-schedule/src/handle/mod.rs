//! What is a submitter left with? A handle, a control, and errors.

mod controls;
mod error;
mod job_control;
mod job_handle;

pub(crate) use error::Refusal;
pub use error::{JobError, Panic, SubmitError};
pub use job_control::JobControl;
pub use job_handle::JobHandle;
