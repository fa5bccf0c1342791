//! Timers that outlive the process.

mod answer;
mod builder;
mod dead_letter;
mod delivery;
mod durable;
#[doc(hidden)]
pub mod engine;
mod error;
mod event;
mod failure;
mod metrics;
mod new_timer;
mod options;
mod shell;

pub use answer::{Cancelled, Inserted, Redriven, Rescheduled};
pub use builder::Builder;
pub use dead_letter::DeadLetter;
pub use delivery::Delivery;
#[cfg(feature = "json")]
pub use delivery::InvalidPayload;
pub use durable::Durable;
pub use error::{Error, OpenError};
pub use event::Event;
pub use failure::{Dead, Failure, Retry};
pub use metrics::Metrics;
pub(crate) use new_timer::When;
pub use new_timer::{Insert, NAME_LIMIT, NewTimer};
pub use options::{Drain, HandlerOptions, Stopped};
#[doc(hidden)]
pub use shell::clock::Shift;
pub use waterwheel_store as store;
pub use waterwheel_store::{Handle, Id};
