//! `Sleep`: the contract of tokio's, line by line.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use futures::future::join_all;
use pin_project_lite::pin_project;
use waterwheel::{Duration, Instant, Sleep, Timer, sleep, sleep_until};

use crate::support::{FAR, Probe, assert_settled, metrics, ms, own_timer, poll_once, us, waiting};

/// Deltas at the edges of every dial and beyond the last, in milliseconds.
const EDGES: &[u64] = &[
    1,
    2,
    998,
    999,
    1_000,
    1_001,
    1_999,
    2_000,
    59_999,
    60_000,
    60_001,
    119_999,
    3_599_999,
    3_600_000,
    3_600_001,
    86_399_999,
    86_400_000,
    86_400_001,
    64 * 86_400_000,
    65 * 86_400_000 + 1,
    400 * 86_400_000 + 17,
];

#[tokio::test(start_paused = true)]
async fn a_sleep_is_ready_at_its_deadline_and_not_before() {
    for &delay in EDGES {
        let start = Instant::now();
        let mut sleep = waiting(sleep(ms(delay)));
        if delay > 1 {
            tokio::time::sleep(ms(delay - 1)).await;
            assert!(poll_once(&mut sleep).is_pending(), "{delay} ms");
        }
        sleep.await;
        assert_eq!(start.elapsed(), ms(delay));
    }
    assert_settled(&Timer::current());
}

// folly c53bda788, akka-core#1016, netty#1959: a slot of the next revolution drained in this one.
#[tokio::test(start_paused = true)]
async fn a_sleep_at_the_edge_of_a_dial_is_not_early_beside_others() {
    let start = Instant::now();
    let mut all = Vec::new();
    for offset in [0, 1, 500, 999, 1_000, 59_000] {
        tokio::time::sleep_until(start + ms(offset)).await;
        for &delay in EDGES {
            let due = ms(offset + delay);
            all.push(tokio::spawn(async move {
                sleep_until(start + due).await;
                assert_eq!(start.elapsed(), due);
            }));
        }
    }
    for task in all {
        task.await.expect("a sleep on time");
    }
    assert_settled(&Timer::current());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sleep_is_never_early_in_real_time() {
    let sleeps = (0..200_u64).map(|step| {
        tokio::spawn(async move {
            let deadline = Instant::now() + us(step * 137);
            sleep_until(deadline).await;
            assert!(Instant::now() >= deadline);
        })
    });
    for task in join_all(sleeps).await {
        task.expect("never early");
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_the_exact_instant_that_was_asked_for() {
    let now = Instant::now();
    let odd = Duration::from_nanos(1_234_567);
    let timer = own_timer();
    for sleep in [
        sleep(odd),
        sleep_until(now + odd),
        timer.sleep(odd),
        timer.sleep_until(now + odd),
    ] {
        assert_eq!(sleep.deadline(), now + odd);
    }
    let mut sleep = sleep(odd);
    sleep.set_deadline(now + odd * 3);
    assert_eq!(sleep.deadline(), now + odd * 3);
    (&mut sleep).await;
    assert_eq!(sleep.deadline(), now + odd * 3);
}

#[tokio::test(start_paused = true)]
async fn it_is_elapsed_once_it_has_fired() {
    let mut sleep = sleep(ms(10));
    assert!(!sleep.is_elapsed());
    assert!(poll_once(&mut sleep).is_pending());
    assert!(!sleep.is_elapsed());
    tokio::time::sleep(ms(9)).await;
    assert!(!sleep.is_elapsed());
    tokio::time::sleep(ms(2)).await;
    assert!(sleep.is_elapsed(), "the driver has fired it");
    for _ in 0..3 {
        assert!(poll_once(&mut sleep).is_ready());
        assert!(sleep.is_elapsed());
    }
    // Likewise once it was polled past its deadline.
    let mut sleep = waterwheel::sleep(ms(10));
    tokio::time::advance(ms(10)).await;
    assert!(poll_once(&mut sleep).is_ready());
    assert!(sleep.is_elapsed());
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn a_zero_or_past_deadline_is_ready_at_the_first_poll() {
    let long_ago = Instant::now();
    tokio::time::advance(Duration::from_secs(100)).await;
    let timer = own_timer();
    for mut sleep in [
        sleep(Duration::ZERO),
        sleep_until(Instant::now()),
        sleep_until(long_ago),
        timer.sleep(Duration::ZERO),
        timer.sleep_until(long_ago),
    ] {
        assert!(poll_once(&mut sleep).is_ready());
    }
    assert_eq!(timer.metrics().armed(), 0);
}

#[tokio::test(start_paused = true)]
async fn reset_before_completion_moves_the_deadline_either_way() {
    let start = Instant::now();
    for (first, then) in [(10, 30), (30, 10), (10, 5_000), (5_000, 10), (7, 7)] {
        let start = Instant::now();
        let mut polled = waiting(sleep(ms(first)));
        polled.set_deadline(start + ms(then));
        let mut fresh = sleep(ms(first));
        fresh.set_deadline(start + ms(then));
        polled.await;
        assert_eq!(start.elapsed(), ms(then), "{first} ms, then {then} ms");
        assert!(poll_once(&mut fresh).is_ready());
    }
    let total = 30 + 10 + 5_000 + 10 + 7;
    assert_eq!(start.elapsed(), ms(total));
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn many_resets_to_and_fro_end_at_the_last_deadline() {
    let start = Instant::now();
    let mut sleep = waiting(sleep(ms(100)));
    for millis in [200, 50, 300, 70, 5_000, 60, 40, 65, 120, 90] {
        sleep.set_deadline(start + ms(millis));
    }
    sleep.await;
    assert_eq!(start.elapsed(), ms(90));
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn reset_after_completion_makes_it_pending_again() {
    let mut sleep = sleep(ms(5));
    for _ in 0..3 {
        (&mut sleep).await;
        let again = Instant::now() + ms(5);
        sleep.set_deadline(again);
        assert!(!sleep.is_elapsed());
        assert!(poll_once(&mut sleep).is_pending());
        (&mut sleep).await;
        assert_eq!(Instant::now(), again);
        sleep.set_deadline(Instant::now());
        assert!(poll_once(&mut sleep).is_ready(), "reset to the past");
        sleep.set_deadline(Instant::now() + ms(1));
    }
}

#[tokio::test(start_paused = true)]
async fn reset_has_the_form_of_tokio_that_takes_a_pin_by_value() {
    pin_project! {
        struct Idle {
            #[pin]
            sleep: Sleep,
        }
    }
    impl Future for Idle {
        type Output = ();
        fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            self.project().sleep.poll(context)
        }
    }
    let start = Instant::now();
    let mut idle = pin!(Idle {
        sleep: sleep(ms(5))
    });
    assert!(poll_once(&mut idle).is_pending());
    // tokio's `reset` takes the pin by value, so that a projection can be reset.
    idle.as_mut().project().sleep.reset(start + ms(20));
    idle.await;
    assert_eq!(start.elapsed(), ms(20));
    let mut pinned = pin!(sleep(ms(1)));
    pinned.as_mut().reset(start + ms(40));
    pinned.await;
    assert_eq!(start.elapsed(), ms(40));
}

#[tokio::test(start_paused = true)]
async fn dropping_cancels_and_wakes_nothing() {
    let timer = own_timer();
    let probe = Probe::new();
    let sleep = probe.waiting(timer.sleep(ms(5)));
    drop(sleep);
    let metrics = metrics(&timer);
    assert_eq!((metrics.cancelled(), metrics.pending()), (1, 0));
    tokio::time::sleep(ms(100)).await;
    assert_eq!((probe.wakes(), timer.metrics().fired()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn delays_without_end_are_cut_to_thirty_years() {
    let now = Instant::now();
    let timer = own_timer();
    for delay in [
        FAR,
        FAR + ms(1),
        Duration::from_secs(1 << 40),
        Duration::MAX,
    ] {
        for mut sleep in [sleep(delay), timer.sleep(delay)] {
            assert_eq!(sleep.deadline(), now + FAR);
            assert!(poll_once(&mut sleep).is_pending());
        }
    }
    let short = FAR - ms(1);
    assert_eq!(sleep(short).deadline(), now + short);
    sleep(Duration::MAX).await;
    assert_eq!(now.elapsed(), FAR);
    assert_settled(&timer);
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn sleeps_due_at_one_tick_all_fire_at_it() {
    let start = Instant::now();
    // More than a batch of the driver.
    let sleeps = (0..2_000).map(|_| async {
        sleep(ms(50)).await;
        start.elapsed()
    });
    for elapsed in join_all(sleeps).await {
        assert_eq!(elapsed, ms(50));
    }
    assert_eq!(assert_settled(&Timer::current()).fired(), 2_000);
}

#[tokio::test(start_paused = true)]
async fn a_fine_or_coarse_resolution_rounds_up_to_its_own_ticks() {
    for (resolution, delay, fired) in [
        (us(100), us(1_050), us(1_100)),
        (us(100), us(900), us(900)),
        (ms(10), ms(1), ms(10)),
        (ms(10), ms(10), ms(10)),
        (ms(10), ms(101), ms(110)),
        (ms(1_000), ms(1), ms(1_000)),
        (ms(1_000), ms(59_001), ms(60_000)),
    ] {
        let timer = Timer::builder().resolution(resolution).start();
        let timer = timer.expect("a timer");
        let start = Instant::now();
        timer.sleep(delay).await;
        // tokio's paused clock moves by whole milliseconds.
        let elapsed = start.elapsed();
        let latest = fired.max(ms(1)) + ms(1);
        assert!(
            elapsed >= delay && elapsed <= latest,
            "{delay:?} at {resolution:?}: {elapsed:?}"
        );
        if resolution >= ms(1) {
            assert_eq!(elapsed, fired);
        }
        assert_settled(&timer);
        // Back to a whole millisecond.
        tokio::time::sleep(ms(1)).await;
    }
}
