//! A demo load: requests with timeouts, most of which are answered in time; sleeps of every length; the jobs of a scheduler.

mod jobs;

use std::time::Duration;

use tokio::runtime::Runtime;
use waterwheel::{Sleep, Timer};
use waterwheel_schedule::Scheduler;

/// The number of tasks that make calls, and of tasks that sleep for milliseconds.
const CLIENTS: u64 = 20;
/// The number of timers that wait for hours, days and months.
const FAR: u64 = 2_000;

/// Starts the load. Each task ends when the timer is stopped.
pub(crate) fn start(runtime: &Runtime, timer: &Timer, requests: u64, orders: u64) -> Scheduler {
    for client in 0..CLIENTS {
        runtime.spawn(call(timer.clone(), client));
        runtime.spawn(wait_often(timer.clone(), client));
    }
    for request in 0..requests {
        runtime.spawn(wait_long(timer.clone(), request));
    }
    for far in 0..FAR {
        runtime.spawn(wait_far(timer.clone(), far));
    }
    let _inside = runtime.enter();
    let scheduler = Scheduler::builder().timer(timer).build();
    jobs::submit(&scheduler, orders);
    scheduler
}

/// Makes calls with a timeout of 30 s that are answered within some milliseconds.
async fn call(timer: Timer, client: u64) {
    let mut dice = Dice(client);
    loop {
        let mut calls = Vec::new();
        for _ in 0..20 {
            let (limit, answer) = (Duration::from_secs(30), dice.millis(1, 40));
            let Ok(answer) = timer.try_sleep(answer) else {
                return;
            };
            let Ok(call) = timer.try_timeout(limit, answer) else {
                return;
            };
            calls.push(tokio::spawn(call));
        }
        for call in calls {
            let _ = call.await;
        }
    }
}

/// Sleeps for a few milliseconds, again and again.
async fn wait_often(timer: Timer, client: u64) {
    let mut dice = Dice(client + CLIENTS);
    while wait(timer.try_sleep(dice.millis(1, 20))).await {}
}

/// Sleeps for up to a minute, and occasionally for up to an hour, again and again.
async fn wait_long(timer: Timer, request: u64) {
    let mut dice = Dice(request);
    loop {
        let most = match dice.roll(20) {
            0 => 3_600_000,
            _ => 60_000,
        };
        if !wait(timer.try_sleep(dice.millis(500, most))).await {
            return;
        }
    }
}

async fn wait_far(timer: Timer, far: u64) {
    let mut dice = Dice(far);
    let day = 86_400_000;
    let most = [day / 2, 2 * day, 30 * day, 90 * day][dice.roll(4) as usize];
    wait(timer.try_sleep(dice.millis(3_600_000, most))).await;
}

/// Waits for a sleep. Returns whether its deadline has come.
async fn wait(sleep: Result<Sleep, waterwheel::error::Error>) -> bool {
    let Ok(mut sleep) = sleep else {
        return false;
    };
    (&mut sleep).await;
    !sleep.was_stopped()
}

/// Random numbers, the same ones in every run: splitmix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.roll(most - least))
    }
}
