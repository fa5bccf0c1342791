//! Time itself: it wraps, has a limited range, does not drift, may jump, and is never early.
//!
//! The wheel's own edge cases are in `tests/wheel/`; here are whole futures, and long runs.

#[path = "../support/mod.rs"]
mod support;

mod centuries;
mod intervals;
mod never_early;
mod suspend;
mod wraps;

use waterwheel::{Duration, Timer};

const DAY: Duration = Duration::from_secs(86_400);

/// A separate timer with this tick length, on the current runtime.
#[track_caller]
fn timer_of(resolution: Duration) -> Timer {
    let timer = Timer::builder().resolution(resolution).start();
    timer.expect("it divides a second")
}

/// Lets the other tasks run, including the driver, until this holds or they have had more than
/// enough turns. A paused clock stands still meanwhile.
async fn yield_until(holds: impl Fn() -> bool) {
    for _ in 0..20_000 {
        if holds() {
            return;
        }
        tokio::task::yield_now().await;
    }
}
