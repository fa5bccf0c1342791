//! x
#![forbid(unsafe_code)]

pub mod error;
pub mod wheel;

mod driver;
mod sync;
mod time;

pub use driver::{Builder, Lateness, Metrics, Timer};
pub use time::{
    Interval, MissedTickBehavior, Sleep, Timeout, interval, interval_at, sleep, sleep_until,
    timeout, timeout_at,
};

#[doc(no_inline)]
pub use std::time::Duration;
#[doc(no_inline)]
pub use tokio::time::Instant;

#[cfg(feature = "test-util")]
#[doc(no_inline)]
pub use tokio::time::{advance, pause, resume};
