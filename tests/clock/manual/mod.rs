//! `ManualClock`: each test runs on a single-threaded and on a two-threaded runtime.

mod advance;
mod futures;
mod life;
mod order;
mod race;
mod random;

use tokio::runtime::Runtime;
use waterwheel::{ManualClock, Timer};

use crate::support::{current_thread, metrics, multi_thread, on_manual_clock};

/// Runs `act` with a clock and a timer on it, on both flavors of runtime.
fn on_both_flavors(act: impl Fn(&Runtime, &ManualClock, &Timer)) {
    for runtime in [current_thread(), multi_thread(2)] {
        let (clock, timer) = on_manual_clock(&runtime);
        act(&runtime, &clock, &timer);
        metrics(&timer);
    }
}

fn start(runtime: &Runtime, clock: &ManualClock) -> Timer {
    let builder = Timer::builder().clock(clock.clone());
    builder.start_on(runtime.handle()).expect("a timer")
}
