//! Stopping a timer: `shutdown`, `drain`, the end of its runtime.

mod drain;
mod races;
mod runtime_end;
mod shutdown;

/// What an infallible call says once the timer takes nothing new.
const STOPPED: &[&str] = &["was stopped", "Timer::builder"];
