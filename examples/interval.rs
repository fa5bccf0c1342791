//! Intervals: a heartbeat that does not drift, three ways to handle missed ticks, and an interval as a stream.
//!
//! ```text
//! cargo run --example interval
//! ```

use std::thread;

use futures::StreamExt;
use waterwheel::{Duration, Instant, MissedTickBehavior, interval};

const PERIOD: Duration = Duration::from_millis(50);

#[tokio::main]
async fn main() {
    // The first tick comes at once: at the end of the timer's current tick. The work between two ticks does not shift the next one.
    let start = Instant::now();
    let mut heartbeat = interval(PERIOD);
    for n in 0..4 {
        heartbeat.tick().await;
        println!("tick {n} after {:3} ms", start.elapsed().as_millis());
        waterwheel::sleep(Duration::from_millis(20)).await;
    }

    // The task is busy for 160 ms, so it misses the ticks at 50, 100 and 150 ms.
    println!("\na pause of 160 ms with a period of 50 ms:");
    for behavior in [
        MissedTickBehavior::Burst,
        MissedTickBehavior::Delay,
        MissedTickBehavior::Skip,
    ] {
        let start = Instant::now();
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(behavior);
        ticks.tick().await;
        thread::sleep(Duration::from_millis(160));
        let mut taken = Vec::new();
        for _ in 0..5 {
            ticks.tick().await;
            taken.push(start.elapsed().as_millis());
        }
        let missed = ticks.missed_ticks();
        println!("{behavior:?}: ticks taken at {taken:?} ms, {missed} missed");
    }

    // An interval is also a stream.
    let ticks = interval(Duration::from_millis(10)).take(3).count().await;
    println!("\n{ticks} ticks from a stream");
}
