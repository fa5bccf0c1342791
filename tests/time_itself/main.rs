//! Time itself: where it wraps, how far it reaches, that it does not drift, jumps, and is never early.
//!
//! The pure wheel's own edges are in `tests/wheel/`; here are whole futures, and runs that are long.

#[path = "../support/mod.rs"]
mod support;

mod centuries;
mod intervals;
mod never_early;
mod suspend;
mod wraps;

use waterwheel::{Duration, Timer};

const DAY: Duration = Duration::from_secs(86_400);

/// A timer of one's own with this length of a tick, on the runtime we are in.
#[track_caller]
fn timer_of(resolution: Duration) -> Timer {
    let timer = Timer::builder().resolution(resolution).start();
    timer.expect("it divides a second")
}

/// Lets the other tasks run, the driver among them, until this holds or they have had more than
/// enough of it. A paused clock stands still meanwhile.
async fn yield_until(holds: impl Fn() -> bool) {
    for _ in 0..20_000 {
        if holds() {
            return;
        }
        tokio::task::yield_now().await;
    }
}
