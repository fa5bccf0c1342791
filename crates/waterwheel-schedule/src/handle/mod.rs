//! What is a submitter left with? A handle and a control.

mod controls;
mod job_control;
mod job_handle;

pub use job_control::JobControl;
pub use job_handle::JobHandle;
