//! What a task pays: futures polled by hand, on the main thread, within a multi-thread runtime.
//!
//! That is the flavor of services, whose clock cannot be paused; on a current-thread runtime the
//! library takes other paths. The main thread has a shard of its own, so nobody else wants its
//! lock, and the driver sleeps on a worker towards deadlines that never come.

use std::future::{Future, poll_fn, ready};
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Builder, Runtime};
use waterwheel::{Duration, Instant, Sleep, Timer, sleep, timeout};

use crate::Counter;
use crate::waker::Wakes;

/// A round's operations: few enough that some rounds see no tick pass.
const OPERATIONS: usize = 100;

/// What most timeouts are.
const DELAY: Duration = Duration::from_secs(30);

/// Keeps the wheel from ever being empty, which has ways of its own.
const FAR: Duration = Duration::from_secs(3600);

pub(crate) fn count_all(counter: &Counter) {
    count_own(counter);
    count_ambient(counter);
    count_armed(counter);
}

/// With a timer of our own.
fn count_own(counter: &Counter) {
    let runtime = multi_thread();
    let timer = own_timer(&runtime);
    let (_, waker) = &Wakes::new();
    let mut far = timer.sleep(FAR);
    arm(&mut far, waker);

    count_life(counter, "own", || own(&timer), waker);
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

/// With the free functions.
fn count_ambient(counter: &Counter) {
    let runtime = multi_thread();
    let _entered = runtime.enter();
    let (_, waker) = &Wakes::new();
    let mut far = sleep(FAR);
    arm(&mut far, waker);

    count_life(counter, "ambient", ambient, waker);
    counter.count(
        "timeout_pending_ambient",
        OPERATIONS,
        || (),
        |()| {
            for _ in 0..OPERATIONS {
                complete_at_second_poll(timeout(DELAY, pending_once()), waker);
            }
        },
    );
    counter.count(
        "timeout_ready_ambient",
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

/// What becomes of a sleep that nobody waits for in the end.
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

/// What becomes of a sleep that is armed already; whichever way it found its timer.
fn count_armed(counter: &Counter) {
    let runtime = multi_thread();
    let timer = own_timer(&runtime);
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
    counter.count(
        "poll_fired",
        OPERATIONS,
        || {
            let mut sleeps = armed(make, waker);
            for sleep in &mut sleeps {
                // It fires at once.
                sleep.set_deadline(Instant::now());
            }
            sleeps
        },
        |sleeps| {
            for sleep in sleeps {
                assert!(poll(sleep, waker).is_ready());
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

fn own_timer(runtime: &Runtime) -> Timer {
    let timer = Timer::builder().start_on(runtime.handle());
    timer.expect("the settings are in range")
}

fn armed(make: impl Fn() -> Sleep, waker: &Waker) -> Vec<Sleep> {
    let mut sleeps: Vec<Sleep> = (0..OPERATIONS).map(|_| make()).collect();
    for sleep in &mut sleeps {
        arm(sleep, waker);
    }
    sleeps
}

// What is counted is not inlined into the loops above: else a change of a loop could change what
// the compiler makes of the library's code.

#[inline(never)]
fn own(timer: &Timer) -> Sleep {
    timer.sleep(DELAY)
}

#[inline(never)]
fn ambient() -> Sleep {
    sleep(DELAY)
}

#[inline(never)]
fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

fn arm(sleep: &mut Sleep, waker: &Waker) {
    assert!(poll(sleep, waker).is_pending());
}

/// A call whose answer is not there at once.
fn pending_once() -> impl Future<Output = ()> + Unpin {
    let mut asked = false;
    poll_fn(move |_| {
        if std::mem::replace(&mut asked, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
}

fn complete_at_second_poll<F: Future + Unpin>(mut future: F, waker: &Waker) {
    assert!(poll(&mut future, waker).is_pending());
    assert!(poll(&mut future, waker).is_ready());
}
