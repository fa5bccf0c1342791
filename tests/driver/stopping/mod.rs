//! Stopping a timer: `shutdown`, `drain`, the end of its runtime.

mod drain;
mod races;
mod runtime_end;
mod shutdown;

/// The message of an infallible call once the timer accepts nothing new.
const STOPPED: &[&str] = &["was stopped", "Timer::builder"];
