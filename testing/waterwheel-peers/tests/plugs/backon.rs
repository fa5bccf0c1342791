//! backon: `waterwheel::sleep` is a `backon::Sleeper`, as is any closure that returns a future.

use std::future::IntoFuture;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use backon::{ConstantBuilder, Retryable};
use waterwheel::{Duration, Instant, ManualClock, Timer};

use crate::support::{ms, poll_once};

const DELAY: Duration = ms(100);

#[tokio::test]
async fn retries_wait_by_the_runtimes_timer() {
    let start = Instant::now();
    let tries = AtomicUsize::new(0);
    let answer = (|| fails_twice(&tries))
        .retry(ConstantBuilder::default().with_delay(DELAY))
        .sleep(waterwheel::sleep)
        .await;
    assert_eq!(answer.unwrap(), "done");
    assert!(start.elapsed() >= DELAY * 2);
    assert!(Timer::current().metrics().armed() > 0);
}

#[tokio::test]
async fn retries_wait_by_a_timer_of_our_own() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).start().unwrap();
    let sleep = {
        let timer = timer.clone();
        move |delay| timer.sleep(delay)
    };
    let tries = AtomicUsize::new(0);
    let retries = (|| fails_twice(&tries))
        .retry(ConstantBuilder::default().with_delay(DELAY))
        .sleep(sleep);
    let mut retries = pin!(retries.into_future());
    for expected in [1, 2] {
        assert!(poll_once(&mut retries).is_pending());
        assert_eq!(tries.load(Ordering::SeqCst), expected);
        clock.advance(DELAY);
    }
    assert_eq!(retries.await.unwrap(), "done");
    assert_eq!(timer.metrics().fired(), 2);
}

async fn fails_twice(tries: &AtomicUsize) -> io::Result<&'static str> {
    match tries.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => Err(io::ErrorKind::ConnectionRefused.into()),
        _ => Ok("done"),
    }
}
