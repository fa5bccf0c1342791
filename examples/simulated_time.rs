//! Simulated time: a week of a thousand clients that call, time out and retry, simulated in moments, twice with the same outcome.
//!
//! ```text
//! cargo run --release --example simulated_time
//! ```

use std::cell::RefCell;
use std::error::Error;
use std::future::Future;
use std::pin::pin;

use fastrand::Rng;
use futures::future::join_all;
use waterwheel::{Duration, Instant, ManualClock, Timer};

const WEEK: Duration = Duration::from_secs(7 * 86_400);
const LIMIT: Duration = Duration::from_millis(200);

/// The outcome of a simulation.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    replies: u64,
    timeouts: u64,
    worst: Duration,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let first = simulate(1_000, 42).await?;
    println!("{first:#?}");
    println!("a week, simulated in {:.1?}", begun.elapsed());
    assert_eq!(first, simulate(1_000, 42).await?);
    println!("a second run had the same outcome");
    Ok(())
}

async fn simulate(clients: u64, seed: u64) -> Result<Seen, Box<dyn Error>> {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).start()?;
    let seen = RefCell::new(Seen::default());
    let end = clock.now() + WEEK;
    let clients =
        (0..clients).map(|number| client(&timer, end, Rng::with_seed(seed + number), &seen));
    run(&clock, join_all(clients)).await;
    Ok(seen.into_inner())
}

/// Runs a future in simulated time: whenever nothing in it can make progress, advances the clock to the next timer.
async fn run<F: Future>(clock: &ManualClock, future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        tokio::select! {
            biased;
            output = &mut future => return output,
            () = async {
                clock.advance_to_next();
                tokio::task::yield_now().await;
            } => {}
        }
    }
}

/// Calls about once an hour. A call that takes too long is retried, after a backoff that doubles each time.
async fn client(timer: &Timer, end: Instant, mut random: Rng, seen: &RefCell<Seen>) {
    while timer.now() < end {
        timer
            .sleep(up_to(Duration::from_secs(7_200), &mut random))
            .await;
        let begun = timer.now();
        let mut backoff = Duration::from_secs(1);
        // One call in ten takes longer than its limit.
        while timer
            .timeout(LIMIT, call(timer, &mut random))
            .await
            .is_err()
        {
            seen.borrow_mut().timeouts += 1;
            timer.sleep(backoff + up_to(backoff, &mut random)).await;
            backoff *= 2;
        }
        let mut seen = seen.borrow_mut();
        seen.replies += 1;
        seen.worst = seen.worst.max(timer.now() - begun);
    }
}

async fn call(timer: &Timer, random: &mut Rng) {
    timer.sleep(up_to(LIMIT * 10 / 9, random)).await;
}

fn up_to(most: Duration, random: &mut Rng) -> Duration {
    most.mul_f64(random.f64())
}
