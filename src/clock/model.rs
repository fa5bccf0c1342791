//! A model's clock. It stands still until the model moves it.

#![cfg_attr(not(test), allow(dead_code))]

use std::sync::OnceLock;

use loom::sync::atomic::{AtomicU64, Ordering};
use tokio::time::{Duration, Instant};

loom::lazy_static! {
    /// Milliseconds since `start`.
    static ref NOW: AtomicU64 = AtomicU64::new(0);
}

pub(crate) fn machine_now() -> std::time::Instant {
    start() + Duration::from_millis(millis())
}

pub(crate) fn tokio_now() -> Instant {
    Instant::from_std(machine_now())
}

/// Where every model's clock starts. Made once, so that all executions are alike.
pub(crate) fn start() -> std::time::Instant {
    static EPOCH: OnceLock<std::time::Instant> = OnceLock::new();
    *EPOCH.get_or_init(std::time::Instant::now)
}

/// The instant this many milliseconds after the start.
pub(crate) fn at(millis: u64) -> Instant {
    Instant::from_std(start() + Duration::from_millis(millis))
}

/// The number of milliseconds since the start.
pub(crate) fn millis() -> u64 {
    NOW.load(Ordering::Relaxed)
}

/// Moves the clock, and wakes nothing: no thread has noticed yet.
pub(crate) fn set(millis: u64) {
    NOW.store(millis, Ordering::Relaxed);
}
