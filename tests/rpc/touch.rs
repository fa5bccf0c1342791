//! Touches from any thread and with any instant.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use waterwheel::rpc::IdleTimeout;
use waterwheel::{Duration, Instant, Timer, sleep};

use crate::support::{HOUR, end_of_time, ms, own_timer, paused, us};

#[tokio::test(start_paused = true)]
async fn a_touch_before_the_last_changes_nothing() {
    let now = Instant::now();
    let idle = IdleTimeout::new(ms(10));
    assert_eq!(idle.deadline(), Some(now + ms(10)));
    for (touch, last) in [(5, 5), (4, 5), (0, 5), (9, 9), (6, 9), (9, 9)] {
        idle.touch_at(now + ms(touch));
        assert_eq!(idle.deadline(), Some(now + ms(last) + ms(10)));
    }
    // An instant before the timer was started.
    if let Some(long_ago) = now.checked_sub(ms(60_000)) {
        idle.touch_at(long_ago);
    }
    assert_eq!(idle.deadline(), Some(now + ms(19)));
}

#[tokio::test(start_paused = true)]
async fn a_touch_is_rounded_up_to_a_tick() {
    let now = Instant::now();
    let idle = IdleTimeout::new(ms(10));
    for (micros, millis) in [(1, 1), (1_000, 1), (1_001, 2), (1_999, 2), (2_000, 2)] {
        idle.touch_at(now + us(micros));
        assert_eq!(idle.deadline(), Some(now + ms(millis) + ms(10)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_touch_in_the_future_counts_from_then() {
    let start = Instant::now();
    let idle = IdleTimeout::new(ms(10));
    idle.touch_at(start + ms(50));
    idle.touch();
    assert!(idle.guard(pending::<()>()).await.is_err());
    assert_eq!(start.elapsed(), ms(60));
}

#[tokio::test(start_paused = true)]
async fn a_touch_at_the_end_of_time_means_never() {
    let idle = IdleTimeout::new(ms(10));
    let guarded = idle.guard(async {
        sleep(ms(1)).await;
        idle.touch_at(end_of_time());
        pending::<()>().await;
    });
    assert!(waterwheel::timeout(1_000 * HOUR, guarded).await.is_err());
}

/// A slow thread must not overwrite the later touch of another.
#[test]
fn of_many_threads_the_latest_touch_counts() {
    const THREADS: u64 = 4;
    const TOUCHES: u64 = 100_000;
    let runtime = paused();
    let timer = runtime.block_on(async { own_timer() });
    let start = timer.now();
    let idle = IdleTimeout::on(&timer, ms(10));
    // Each touch has its own tick, taken from here: so the threads meet at every one.
    let next = AtomicU64::new(1);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (idle, next) = (idle.clone(), &next);
            scope.spawn(move || {
                for _ in 0..TOUCHES {
                    let touch = start + ms(next.fetch_add(1, Ordering::Relaxed));
                    idle.touch_at(touch);
                    let deadline = idle.deadline().unwrap();
                    assert!(deadline >= touch + ms(10), "a later touch was overwritten");
                }
            });
        }
    });
    assert_eq!(idle.deadline(), Some(start + ms(THREADS * TOUCHES + 10)));
}

#[test]
fn a_touch_goes_by_the_clock_of_its_timer_on_any_thread() {
    let runtime = paused();
    let timer = runtime.block_on(async { own_timer() });
    let idle = IdleTimeout::on(&timer, ms(10));
    runtime.block_on(tokio::time::advance(Duration::from_secs(1_000)));
    let other = idle.clone();
    thread::spawn(move || other.touch()).join().unwrap();
    assert_eq!(idle.deadline(), Some(timer.now() + ms(10)));
}

#[test]
fn a_touch_after_the_end_of_its_runtime_does_no_harm() {
    let runtime = paused();
    let idle = runtime.block_on(async { IdleTimeout::new(ms(10)) });
    drop(runtime);
    idle.touch();
    idle.touch_at(Instant::now() + HOUR);
    assert!(idle.deadline() > Some(Instant::now()));
}

#[tokio::test(start_paused = true)]
async fn touches_arm_reset_and_wake_nothing() {
    let idle = IdleTimeout::new(ms(100));
    let connection = idle.clone();
    let guard = tokio::spawn(idle.guard(pending::<()>()));
    let start = Instant::now();
    for _ in 0..10_000 {
        tokio::time::sleep(ms(1)).await;
        connection.touch();
    }
    assert!(guard.await.unwrap().is_err());
    assert_eq!(start.elapsed(), ms(10_100));
    let metrics = Timer::current().metrics();
    // Once per idle time: when its sleep is due it looks at the cell.
    assert!(metrics.armed() <= 102, "{metrics}");
}
