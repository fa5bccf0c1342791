//! Sleeps: a single one, ten thousand at once, one that is cancelled, and one that is postponed.
//!
//! ```text
//! cargo run --example sleep
//! ```

use tokio::task::JoinSet;
use waterwheel::{Duration, Instant, sleep, sleep_until};

#[tokio::main]
async fn main() {
    let start = Instant::now();
    sleep(Duration::from_millis(100)).await;
    println!("one sleep of 100 ms took {:?}", start.elapsed());

    // Ten thousand tasks. Each sleeps until its own deadline within the next half second.
    let start = Instant::now();
    let mut sleepers = JoinSet::new();
    for n in 0..10_000 {
        let deadline = start + Duration::from_micros(n * 50);
        sleepers.spawn(async move {
            sleep_until(deadline).await;
            Instant::now().checked_duration_since(deadline)
        });
    }
    let lateness = sleepers.join_all().await;
    let early = lateness.iter().filter(|late| late.is_none()).count();
    let latest = lateness.into_iter().flatten().max().unwrap_or_default();
    println!(
        "10 000 sleeps completed after {:?}: {early} were early, the latest was {latest:?} late",
        start.elapsed(),
    );

    // `select!` drops the sleep that loses. The drop cancels the timer and frees its entry at once.
    let start = Instant::now();
    tokio::select! {
        () = sleep(Duration::from_secs(3600)) => println!("an hour has passed"),
        () = sleep(Duration::from_millis(50)) => println!("the short sleep won after {:?}", start.elapsed()),
    }

    // An idle deadline: each packet postpones it. `Sleep` is `Unpin`, so the code needs no pin.
    let patience = Duration::from_millis(50);
    let start = Instant::now();
    let mut packets = waterwheel::interval(Duration::from_millis(20));
    let mut received = 0;
    let mut idle = sleep(patience);
    loop {
        tokio::select! {
            _ = packets.tick(), if received < 10 => {
                received += 1;
                idle.set_deadline(Instant::now() + patience);
            }
            () = &mut idle => break,
        }
    }
    println!(
        "{received} packets kept a connection with an idle timeout of {patience:?} open for {:?}",
        start.elapsed(),
    );
}
