//! The cost to a task on a current-thread runtime whose clock runs: one timer at a time, so that
//! each of them empties the wheel.
//!
//! Counted twice: in the build of a service, as `*_current_thread`, and as `*_pausable` in a build
//! whose tokio has `test-util`, so that the clock could be paused.

use std::rc::Rc;
use std::task::Waker;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::yield_now;
use waterwheel::{Sleep, timeout};

use crate::Counter;
use crate::by_hand::{DELAY, arm, complete_at_second_poll, current, own, own_timer, pending_once};
use crate::task;
use crate::waker::Wakes;

const FLAVOR: &str = if cfg!(feature = "test-util") {
    "pausable"
} else {
    "current_thread"
};

/// The operations of a round, where there is more than one.
const OPERATIONS: usize = 100;

pub(crate) fn count_all(counter: &Rc<Counter>) {
    // Each on its own runtime, so that none is affected by another.
    task::within(&current_thread(), count_own(Rc::clone(counter)));
    task::within(&current_thread(), count_current(Rc::clone(counter)));
}

async fn count_own(counter: Rc<Counter>) {
    let timer = own_timer(&Handle::current());
    let (_, waker) = &Wakes::new();
    count_life(&counter, "own", || own(&timer), waker).await;
    counter.count(
        &format!("timeout_pending_own_{FLAVOR}"),
        OPERATIONS,
        || (),
        |()| {
            for _ in 0..OPERATIONS {
                complete_at_second_poll(timer.timeout(DELAY, pending_once()), waker);
            }
        },
    );
}

async fn count_current(counter: Rc<Counter>) {
    let (_, waker) = &Wakes::new();
    count_life(&counter, "current", current, waker).await;
    counter.count(
        &format!("timeout_pending_current_{FLAVOR}"),
        OPERATIONS,
        || (),
        |()| {
            for _ in 0..OPERATIONS {
                complete_at_second_poll(timeout(DELAY, pending_once()), waker);
            }
        },
    );
}

/// Arms and cancels sleeps.
async fn count_life(counter: &Counter, timer: &str, make: impl Fn() -> Sleep, waker: &Waker) {
    // The driver goes to sleep towards this one. As in a service, later timers have later deadlines,
    // and leave it asleep.
    let mut first = make();
    arm(&mut first, waker);
    yield_now().await;
    drop(first);

    counter.count(
        &format!("cancel_{timer}_{FLAVOR}"),
        1,
        || {
            let mut sleep = make();
            arm(&mut sleep, waker);
            Some(sleep)
        },
        |sleep| *sleep = None,
    );
    counter.count(
        &format!("arm_cancel_{timer}_{FLAVOR}"),
        OPERATIONS,
        || (),
        |()| {
            for _ in 0..OPERATIONS {
                arm(&mut make(), waker);
            }
        },
    );
}

fn current_thread() -> Runtime {
    let runtime = Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime starts")
}
