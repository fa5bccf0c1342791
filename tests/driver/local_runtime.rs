//! tokio's `LocalRuntime`, in a separate file since it requires tokio 1.51.

use std::future::pending;
use std::rc::Rc;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use waterwheel::{Duration, Instant, Timer, interval, sleep, timeout};

use crate::support::{HOUR, Probe, assert_over, assert_settled, ms, poll_once, within};

fn local_runtime(start_paused: bool) -> LocalRuntime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(start_paused)
        .build_local(LocalOptions::default())
        .expect("a runtime")
}

#[test]
fn timers_work_in_a_local_runtime() {
    within(Duration::from_secs(10), || {
        local_runtime(false).block_on(async {
            let start = Instant::now();
            let shared = Rc::new(ms(50));
            let task = tokio::task::spawn_local({
                let shared = Rc::clone(&shared);
                async move { sleep(*shared).await }
            });
            task.await.expect("it does not panic");
            assert!(start.elapsed() >= *shared);
            assert!(timeout(ms(50), pending::<()>()).await.is_err());
            let mut interval = interval(ms(50));
            interval.tick().await;
            interval.tick().await;
            let timer = Timer::builder().start().expect("a timer");
            timer.sleep(ms(50)).await;
            assert_eq!(assert_settled(&timer).fired(), 1);
            assert!(assert_settled(&Timer::current()).fired() >= 3);
        });
    });
}

#[test]
fn a_local_runtime_with_a_paused_clock_jumps() {
    within(Duration::from_secs(10), || {
        local_runtime(true).block_on(async {
            let start = Instant::now();
            sleep(HOUR).await;
            assert_eq!(start.elapsed(), HOUR);
        });
    });
}

#[test]
fn dropping_a_local_runtime_wakes_what_waits_elsewhere() {
    within(Duration::from_secs(10), || {
        let runtime = local_runtime(false);
        let probe = Probe::new();
        let (mut nap, timer) = runtime.block_on(async {
            let nap = probe.waiting(sleep(HOUR));
            (nap, Timer::current())
        });
        drop(runtime);
        assert_eq!(probe.wakes(), 1);
        assert_over(|| poll_once(&mut nap));
        assert!(!nap.was_stopped() && timer.is_stopped());
        assert_eq!(assert_settled(&timer).stopped(), 1);
    });
}
