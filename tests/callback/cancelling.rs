//! Races between a cancel and a run: exactly one wins.

use std::sync::Arc;
use std::sync::Barrier;
use std::thread;

use waterwheel::{Duration, sleep};

use crate::support::{
    HOUR, assert_settled, eventually, ms, multi_thread, own_timer, with_timer, with_timer_within,
};
use crate::{Blocker, Log, settle};

#[tokio::test(start_paused = true)]
async fn cancel_is_true_exactly_once_and_the_callback_never_runs() {
    let timer = own_timer();
    let log = Log::new();
    let handle = timer.call_after(ms(5), log.note(()));
    let other = handle.clone();
    assert!(handle.cancel());
    assert!(!handle.cancel() && !other.cancel());
    assert!(other.is_cancelled() && !other.is_expired());
    sleep(ms(10)).await;
    assert_eq!(log.len(), 0);
    assert_eq!(assert_settled(&timer).cancelled(), 1);
}

#[tokio::test(start_paused = true)]
async fn cancel_after_the_run_is_false() {
    let timer = own_timer();
    let handle = timer.call_after(ms(5), || ());
    sleep(ms(5)).await;
    settle().await;
    assert!(!handle.cancel());
    assert!(handle.is_expired() && !handle.is_cancelled());
    assert_eq!(assert_settled(&timer).cancelled(), 0);
}

#[test]
fn of_threads_that_cancel_one_wins() {
    let (_runtime, timer) = with_timer(multi_thread(1));
    for _ in 0..200 {
        let handle = timer.call_after(HOUR, || ());
        let start = Barrier::new(4);
        let wins: usize = thread::scope(|scope| {
            let racers = [(); 4].map(|()| {
                scope.spawn(|| {
                    start.wait();
                    usize::from(handle.cancel())
                })
            });
            racers.into_iter().map(|racer| racer.join().unwrap()).sum()
        });
        assert_eq!(wins, 1);
    }
    assert_settled(&timer);
}

#[tokio::test(start_paused = true)]
async fn the_closure_is_gone_at_once_though_the_handle_is_kept() {
    let timer = own_timer();
    let held = Arc::new(());
    let capture = || {
        let held = Arc::clone(&held);
        move || drop(held)
    };
    let cancelled = timer.call_after(HOUR, capture());
    let run = timer.call_after(ms(1), capture());
    assert_eq!(Arc::strong_count(&held), 3);
    assert!(cancelled.cancel());
    assert_eq!(Arc::strong_count(&held), 2);
    sleep(ms(2)).await;
    assert_eq!(Arc::strong_count(&held), 1);
    assert!(run.is_expired());
}

#[test]
fn a_callback_that_is_due_and_has_not_begun_can_be_cancelled() {
    with_timer_within(multi_thread(2), |_runtime, timer| {
        let blocker = Blocker::start(&timer);
        let log = Log::new();
        let due = timer.call_after(Duration::ZERO, log.note("cancelled"));
        let next = timer.call_after(ms(1), log.note("next"));
        eventually("they are due", || timer.metrics().pending() == 0);
        assert!(!due.is_expired() && due.cancel());
        assert!(!due.cancel());
        drop(blocker);
        eventually("the next one runs", || next.is_expired());
        eventually("it has noted it", || log.len() == 1);
        assert_eq!(log.take(), ["next"]);
    });
}
