//! The cost to the driver, on a current-thread runtime with a paused clock: there it runs on
//! the main thread, at the same times in every run.
//!
//! This includes tokio's own work to move its clock and to schedule the driver.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use waterwheel::{Duration, Sleep, Timer};

use crate::Counter;
use crate::waker::Wakes;

pub(crate) fn count_all(counter: &Counter) {
    count_fire(counter);
    count_idle_turn(counter);
}

/// The number of timers that fire: several batches of the driver.
const HERD: usize = 2560;

/// Timers spread over a second that the clock then skips, so that they are all due at once.
fn count_fire(counter: &Counter) {
    let (runtime, timer) = paused();
    counter.count(
        "fire",
        HERD,
        || {
            let (wakes, waker) = Wakes::new();
            let delays = (0..HERD as u64).map(|i| Duration::from_millis(1 + i * 7919 % 1000));
            let mut sleeps: Vec<Sleep> = delays.map(|delay| timer.sleep(delay)).collect();
            for sleep in &mut sleeps {
                arm(sleep, &waker);
            }
            // The driver sees the pending timers.
            runtime.block_on(yield_now());
            (wakes, sleeps)
        },
        |(wakes, _sleeps): &mut (Arc<Wakes>, Vec<Sleep>)| {
            runtime.block_on(async {
                tokio::time::advance(Duration::from_secs(1)).await;
                while wakes.count() < HERD {
                    yield_now().await;
                }
            });
        },
    );
}

/// Turns that find nothing due: a timer is armed that is earlier than all others, and the driver wakes
/// and goes to sleep again towards it. Arming is counted too.
fn count_idle_turn(counter: &Counter) {
    const TURNS: u64 = 50;
    let (runtime, timer) = paused();
    counter.count(
        "idle_turn",
        TURNS as usize,
        || Vec::with_capacity(TURNS as usize),
        |sleeps| {
            runtime.block_on(async {
                for seconds in (1..=TURNS).rev() {
                    let mut sleep = timer.sleep(Duration::from_secs(seconds));
                    arm(&mut sleep, Waker::noop());
                    sleeps.push(sleep);
                    yield_now().await;
                }
            });
        },
    );
}

fn paused() -> (Runtime, Timer) {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("a runtime starts");
    let timer = Timer::builder().start_on(runtime.handle());
    (runtime, timer.expect("the settings are in range"))
}

fn arm(sleep: &mut Sleep, waker: &Waker) {
    let poll = Pin::new(sleep).poll(&mut Context::from_waker(waker));
    assert!(poll.is_pending());
}
