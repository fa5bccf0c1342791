//! Timers that outlive the process.

#[doc(hidden)]
pub mod engine;

pub use waterwheel_store as store;
