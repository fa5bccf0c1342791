//! Timers that outlive the process.

mod answer;
mod dead_letter;
#[doc(hidden)]
pub mod engine;
mod error;
mod event;
mod failure;
mod limits;
mod metrics;
mod new_timer;
mod options;
mod service;
mod shell;

pub use answer::{Cancelled, Inserted, Redriven, Rescheduled};
pub use dead_letter::DeadLetter;
pub use error::{Error, OpenError};
pub use event::Event;
pub use failure::{Dead, Failure, Retry};
pub use limits::NAME_LIMIT;
pub use metrics::Metrics;
pub use new_timer::NewTimer;
pub use options::{Drain, HandlerOptions, Stopped};
#[cfg(feature = "json")]
pub use service::InvalidPayload;
pub use service::{Builder, Delivery, Durable, Insert};
#[doc(hidden)]
pub use shell::clock::Shift;
pub use waterwheel_store as store;
pub use waterwheel_store::{Handle, Id};
