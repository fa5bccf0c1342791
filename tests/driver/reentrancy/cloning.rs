//! Wakers that run code when they are cloned. A poll that has to wait clones its waker.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::Waker;

use cooked_waker::{IntoWaker, Wake, WakeRef};
use waterwheel::{Instant, Sleep, Timer};

use super::acting::{ACTS, Act, Occasion, Setup, act_on_occasion};
use crate::support::{
    HOUR, Probe, assert_settled, bounded_timer, metrics, ms, poll_once, poll_with, waiting,
};

/// A waker that calls `act` each time it is cloned.
fn waker_on_clone(act: impl Fn() + Send + Sync + 'static) -> Waker {
    struct OnClone(Arc<dyn Fn() + Send + Sync>);
    impl Clone for OnClone {
        fn clone(&self) -> OnClone {
            (self.0)();
            OnClone(Arc::clone(&self.0))
        }
    }
    impl WakeRef for OnClone {
        fn wake_by_ref(&self) {}
    }
    impl Wake for OnClone {}
    Box::new(OnClone(Arc::new(act))).into_waker()
}

/// The occasions on which a waker is cloned.
const OCCASIONS: &[(&str, Occasion)] = &[
    ("a sleep is polled first", |setup, waker| {
        let mut sleep = setup.timer.sleep(ms(2));
        let _ = poll_with(&mut sleep, &waker);
        Some(sleep)
    }),
    ("it replaces another waker", |setup, waker| {
        let mut sleep = armed(&setup.timer);
        let _ = poll_with(&mut sleep, &waker);
        Some(sleep)
    }),
    ("a sleep is polled that was postponed", |setup, waker| {
        let mut sleep = armed(&setup.timer);
        sleep.set_deadline(sleep.deadline() + HOUR);
        let _ = poll_with(&mut sleep, &waker);
        Some(sleep)
    }),
    ("the timer is drained", |setup, waker| {
        let sleep = armed(&setup.timer);
        let mut drained = Box::pin(setup.timer.drain());
        let _ = poll_with(&mut drained, &waker);
        drop(sleep);
        let _ = poll_once(&mut drained);
        None
    }),
];

fn armed(timer: &Timer) -> Sleep {
    waiting(timer.sleep(HOUR))
}

// embassy#4978: foreign code ran with a lock held.
#[test]
fn a_waker_may_use_its_timer_when_it_is_cloned() {
    let waker = |setup: Setup, act: Act| waker_on_clone(move || act(&setup));
    for &act in ACTS {
        for &occasion in OCCASIONS {
            act_on_occasion(waker, act, occasion);
        }
    }
}

/// Polls with a waker that panics when it is cloned. The poll must clone it.
fn poll_with_a_panic<F: Future + Unpin>(future: &mut F) {
    let waker = waker_on_clone(|| {
        resume_unwind(Box::new(
            "a waker that panics when it is cloned, on purpose",
        ))
    });
    let polled = catch_unwind(AssertUnwindSafe(|| poll_with(future, &waker)));
    assert!(polled.is_err(), "it was cloned");
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_when_cloned_leaves_its_future_as_it_was() {
    // The bound is the number of timers in use at a time, so a lost permit makes the test fail.
    let timer = bounded_timer(2);
    let (mut sleep, mut dropped) = (timer.sleep(ms(5)), timer.sleep(ms(5)));
    poll_with_a_panic(&mut sleep);
    poll_with_a_panic(&mut dropped);
    drop(dropped);
    assert_eq!(metrics(&timer).armed(), 0);

    // An armed sleep keeps the waker of the previous poll.
    let probe = Probe::new();
    assert!(probe.poll(&mut sleep).is_pending());
    poll_with_a_panic(&mut sleep);
    tokio::time::sleep(ms(6)).await;
    assert_eq!((probe.wakes(), probe.held()), (1, 0));

    // A sleep that is postponed between its wake and its poll must be armed again.
    sleep.set_deadline(Instant::now() + ms(5));
    poll_with_a_panic(&mut sleep);
    assert!(probe.poll(&mut sleep).is_pending());
    tokio::time::sleep(ms(6)).await;
    assert_eq!((probe.wakes(), probe.held()), (2, 0));
    assert!(poll_once(&mut sleep).is_ready());

    let mut interval = timer.interval(ms(10));
    let first = interval.tick().await;
    poll_with_a_panic(&mut Box::pin(interval.tick()));
    assert_eq!(interval.tick().await, first + ms(10));
    poll_with_a_panic(&mut Box::pin(interval.tick()));
    drop(interval);

    let _last = probe.waiting(timer.sleep(ms(5)));
    let mut drain = Box::pin(timer.drain());
    poll_with_a_panic(&mut drain);
    drain.await;
    assert_eq!(probe.wakes(), 3);
    assert_settled(&timer);
}
