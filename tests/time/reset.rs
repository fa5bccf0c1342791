//! Resets, to later, to earlier, to the past and after firing.

use std::future::{Future, poll_fn};
use std::task::Poll;

use tokio::sync::oneshot;
use waterwheel::{Duration, Instant, sleep};

use crate::support::{
    HOUR, LIMIT, Probe, current_thread, eventually, in_a_task, inside, metrics, ms, multi_thread,
    own_timer, poll_once, waiting, within,
};

#[test]
fn a_reset_from_another_runtime_takes_effect() {
    within(LIMIT, || {
        let (home, away) = (multi_thread(1), current_thread());
        let start = Instant::now();
        let mut nap = Box::pin(inside(&home, || sleep(HOUR)));
        let probe = Probe::new();
        assert!(probe.poll(&mut nap).is_pending());
        away.block_on(async { nap.as_mut().reset(start + ms(20)) });
        eventually("the new deadline wakes", || probe.wakes() == 1);
        assert!(start.elapsed() >= ms(20));
        assert!(poll_once(&mut nap).is_ready());
    });
}

// Postponing is free: no early wake, no lock, no turn of the driver.
#[tokio::test(start_paused = true)]
async fn a_reset_to_later_wakes_nothing_before_the_new_deadline() {
    let start = Instant::now();
    let timer = own_timer();
    let probe = Probe::new();
    let mut nap = probe.waiting(timer.sleep(ms(10)));
    let mut due = 10;
    for _ in 0..200 {
        tokio::time::sleep(ms(3)).await;
        due += 7;
        nap.set_deadline(start + ms(due));
    }
    tokio::time::sleep_until(start + ms(due - 1)).await;
    assert_eq!(probe.wakes(), 0);
    assert!(!nap.is_elapsed());
    tokio::time::sleep(ms(1)).await;
    tokio::task::yield_now().await;
    assert_eq!(probe.wakes(), 1);
    assert!(poll_once(&mut nap).is_ready());
    let metrics = metrics(&timer);
    assert_eq!((metrics.armed(), metrics.fired()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_reset_across_all_dials_wakes_nothing_before_its_deadline() {
    for delay in [ms(5), ms(999), ms(1_000), ms(60_001), HOUR, HOUR * 30] {
        for longer in [ms(1), ms(1_000), HOUR, HOUR * 24 * 100] {
            let start = Instant::now();
            let probe = Probe::new();
            let mut nap = probe.waiting(sleep(delay));
            nap.set_deadline(start + delay + longer);
            tokio::time::sleep_until(start + delay + longer - ms(1)).await;
            assert_eq!(probe.wakes(), 0, "{delay:?} and {longer:?}");
            tokio::time::sleep(ms(2)).await;
            assert_eq!(probe.wakes(), 1, "{delay:?} and {longer:?}");
        }
    }
}

// In a task a delay of a second or more trusts the clock read that made it, and its first poll moves the
// hand there. Computed backwards from another deadline, that would be in the future.
#[test]
fn a_reset_before_the_first_poll_makes_no_other_timer_early() {
    in_a_task(|| {
        for delay in [Duration::from_secs(1), Duration::from_secs(60)] {
            let timer = own_timer();
            let mut nap = timer.sleep(delay);
            nap.set_deadline(nap.deadline() + HOUR);
            assert!(poll_once(&mut nap).is_pending());
            let mut other = timer.sleep(HOUR / 2);
            assert!(poll_once(&mut other).is_pending(), "{delay:?}");
        }
    });
}

#[tokio::test(start_paused = true)]
async fn a_reset_to_earlier_wakes_at_the_new_deadline() {
    let start = Instant::now();
    let probe = Probe::new();
    let mut nap = probe.waiting(sleep(HOUR));
    tokio::task::yield_now().await;
    nap.set_deadline(start + ms(20));
    tokio::time::sleep(ms(19)).await;
    assert_eq!(probe.wakes(), 0);
    tokio::time::sleep(ms(2)).await;
    assert_eq!(probe.wakes(), 1);
    assert!(poll_once(&mut nap).is_ready());
}

// golang#41699: deadlines that are moved back and forth wake the driver every time.
#[tokio::test(start_paused = true)]
async fn a_reset_to_and_fro_far_from_now_takes_no_turns() {
    let start = Instant::now();
    let timer = own_timer();
    let mut nap = waiting(timer.sleep(HOUR));
    nap.set_deadline(start + HOUR / 2);
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    let before = timer.metrics().driver_turns();
    for n in 0..100 {
        let back = if n % 2 == 0 { HOUR } else { HOUR / 4 * 3 };
        nap.set_deadline(start + back);
        tokio::task::yield_now().await;
    }
    assert_eq!(timer.metrics().driver_turns(), before);
}

#[tokio::test(start_paused = true)]
async fn a_reset_to_the_past_wakes_the_stored_waker_at_once() {
    let probe = Probe::new();
    let mut nap = probe.waiting(sleep(HOUR));
    nap.set_deadline(Instant::now());
    assert_eq!((probe.wakes(), probe.held()), (1, 0));
    assert!(poll_once(&mut nap).is_ready());
    assert_eq!(probe.wakes(), 1);
}

// DelayQueue #8274: not woken on a reset to what has expired.
#[tokio::test(start_paused = true)]
async fn a_reset_to_the_past_wakes_the_task_that_waits() {
    let (sender, receiver) = oneshot::channel::<Instant>();
    let waiting = tokio::spawn(async move {
        let mut nap = Box::pin(sleep(HOUR));
        let mut receiver = Box::pin(receiver);
        let start = Instant::now();
        poll_fn(|context| {
            if let Poll::Ready(Ok(deadline)) = receiver.as_mut().poll(context) {
                // From now on only the reset wakes this task.
                nap.as_mut().reset(deadline);
                receiver = Box::pin(oneshot::channel().1);
                return Poll::Pending;
            }
            nap.as_mut().poll(context)
        })
        .await;
        start.elapsed()
    });
    tokio::task::yield_now().await;
    let past = Instant::now();
    sender.send(past).expect("it is there");
    let waited = tokio::time::timeout(HOUR * 2, waiting).await;
    let waited = waited.expect("it is woken").expect("it does not panic");
    assert_eq!(waited, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn after_firing_a_reset_makes_it_pending_with_its_next_waker() {
    let (first, second) = (Probe::new(), Probe::new());
    let mut nap = first.waiting(sleep(ms(5)));
    tokio::time::sleep(ms(6)).await;
    assert_eq!(first.wakes(), 1);
    nap.set_deadline(Instant::now() + ms(5));
    assert!(second.poll(&mut nap).is_pending());
    tokio::time::sleep(ms(6)).await;
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    assert!(poll_once(&mut nap).is_ready());
}

// Fired by the driver, postponed before its task has polled it.
#[tokio::test(start_paused = true)]
async fn a_sleep_postponed_between_its_wake_and_its_poll_is_pending() {
    let timer = own_timer();
    let probe = Probe::new();
    let mut nap = probe.waiting(timer.sleep(ms(5)));
    tokio::time::sleep(ms(6)).await;
    assert_eq!(probe.wakes(), 1);
    let start = Instant::now();
    nap.set_deadline(start + ms(50));
    assert!(!nap.is_elapsed());
    assert!(probe.poll(&mut nap).is_pending());
    metrics(&timer);
    tokio::time::sleep(ms(49)).await;
    assert_eq!(probe.wakes(), 1);
    tokio::time::sleep(ms(2)).await;
    assert_eq!(probe.wakes(), 2);
    assert!(poll_once(&mut nap).is_ready());
    assert_eq!(metrics(&timer).fired(), 2);
}
