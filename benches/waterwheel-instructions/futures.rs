//! The cost to a task: futures polled by hand, on the main thread, within a task of a multi-thread runtime.
//!
//! The main thread has its own shard, so no other thread takes its lock, and the driver sleeps on a
//! worker towards deadlines that never come. On a current-thread runtime the library takes other paths;
//! those are in `current_thread`.

use std::future::ready;
use std::hint::black_box;
use std::rc::Rc;
use std::task::Waker;

use tokio::runtime::{Builder, Handle, Runtime};
use waterwheel::{Duration, Instant, Sleep, sleep, timeout};

use crate::Counter;
use crate::by_hand::{
    DELAY, arm, complete_at_second_poll, current, own, own_timer, pending_once, poll,
};
use crate::task;
use crate::waker::Wakes;

/// The operations of a round: few enough that in some rounds no tick passes.
const OPERATIONS: usize = 100;

/// The number of timers that a snapshot counts.
const SEEN: u32 = 10_000;

/// Keeps the wheel from becoming empty, which has separate code paths.
const FAR: Duration = Duration::from_secs(3600);

pub(crate) fn count_all(counter: &Rc<Counter>) {
    task::within(&multi_thread(), count_own(Rc::clone(counter)));
    task::within(&multi_thread(), count_current(Rc::clone(counter)));
    task::within(&multi_thread(), count_armed(Rc::clone(counter)));
    count_outside(counter);
}

/// Counts a separate timer.
async fn count_own(counter: Rc<Counter>) {
    let timer = own_timer(&Handle::current());
    let (_, waker) = &Wakes::new();
    let mut far = timer.sleep(FAR);
    arm(&mut far, waker);

    count_life(&counter, "own", || own(&timer), waker);
    counter.count(
        "timeout_pending_own",
        OPERATIONS,
        || (),
        |()| {
            for _ in 0..OPERATIONS {
                complete_at_second_poll(timer.timeout(DELAY, pending_once()), waker);
            }
        },
    );
}

/// Counts the free functions.
async fn count_current(counter: Rc<Counter>) {
    let (_, waker) = &Wakes::new();
    let mut far = sleep(FAR);
    arm(&mut far, waker);

    count_life(&counter, "current", current, waker);
    counter.count(
        "timeout_pending_current",
        OPERATIONS,
        || (),
        |()| {
            for _ in 0..OPERATIONS {
                complete_at_second_poll(timeout(DELAY, pending_once()), waker);
            }
        },
    );
    counter.count(
        "timeout_ready_current",
        OPERATIONS,
        || (),
        |()| {
            for _ in 0..OPERATIONS {
                let poll = poll(&mut timeout(DELAY, ready(())), waker);
                assert!(poll.is_ready());
            }
        },
    );
}

/// Arms and cancels sleeps.
fn count_life(counter: &Counter, timer: &str, make: impl Fn() -> Sleep, waker: &Waker) {
    counter.count(
        &format!("arm_{timer}"),
        OPERATIONS,
        || Vec::with_capacity(OPERATIONS),
        |sleeps| {
            for _ in 0..OPERATIONS {
                sleeps.push(make());
                arm(sleeps.last_mut().expect("it was pushed"), waker);
            }
        },
    );
    counter.count(
        &format!("cancel_{timer}"),
        OPERATIONS,
        || armed(&make, waker),
        |sleeps| sleeps.clear(),
    );
    counter.count(
        &format!("arm_cancel_{timer}"),
        OPERATIONS,
        || (),
        |()| {
            for _ in 0..OPERATIONS {
                arm(&mut make(), waker);
            }
        },
    );
}

/// Postpones and polls sleeps that are armed. The paths are the same for both timers.
async fn count_armed(counter: Rc<Counter>) {
    let timer = own_timer(&Handle::current());
    let (_, waker) = &Wakes::new();
    let mut far = timer.sleep(FAR);
    arm(&mut far, waker);
    let make = || own(&timer);
    let later = Instant::now() + 2 * DELAY;

    counter.count(
        "postpone",
        OPERATIONS,
        || armed(make, waker),
        |sleeps| {
            for sleep in sleeps {
                sleep.set_deadline(black_box(later));
            }
        },
    );
    counter.count(
        "postpone_poll",
        OPERATIONS,
        || armed(make, waker),
        |sleeps| {
            for sleep in sleeps {
                sleep.set_deadline(black_box(later));
                arm(sleep, waker);
            }
        },
    );
    let past = Instant::now()
        .checked_sub(2 * timer.resolution())
        .expect("the machine has run for longer");
    counter.count(
        "poll_fired",
        OPERATIONS,
        || {
            let mut sleeps = armed(make, waker);
            for sleep in &mut sleeps {
                // It fires at once: a tick in the past is due.
                sleep.set_deadline(past);
            }
            sleeps
        },
        |sleeps| {
            for sleep in sleeps {
                assert!(poll(sleep, waker).is_ready());
            }
        },
    );
    let many: Vec<Sleep> = (0..SEEN)
        .map(|number| {
            // From a minute to months, on four dials.
            let mut sleep = timer.sleep(DELAY * (60 << (number % 17)));
            arm(&mut sleep, waker);
            sleep
        })
        .collect();
    counter.count(
        "snapshot",
        many.len(),
        || (),
        |()| {
            black_box(timer.snapshot());
        },
    );
    drop(many);
}

/// Counts the first poll outside tasks.
fn count_outside(counter: &Counter) {
    let runtime = multi_thread();
    let timer = own_timer(runtime.handle());
    let (_, waker) = &Wakes::new();
    let mut far = timer.sleep(FAR);
    arm(&mut far, waker);
    counter.count(
        "arm_outside",
        OPERATIONS,
        || Vec::with_capacity(OPERATIONS),
        |sleeps| {
            for _ in 0..OPERATIONS {
                sleeps.push(own(&timer));
                arm(sleeps.last_mut().expect("it was pushed"), waker);
            }
        },
    );
}

fn multi_thread() -> Runtime {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build();
    runtime.expect("a runtime starts")
}

fn armed(make: impl Fn() -> Sleep, waker: &Waker) -> Vec<Sleep> {
    let mut sleeps: Vec<Sleep> = (0..OPERATIONS).map(|_| make()).collect();
    for sleep in &mut sleeps {
        arm(sleep, waker);
    }
    sleeps
}
