//! Not hostage: tokio's own timers stand still while the worker that last ran their driver is
//! blocked, and ours do not. In real time, which is the point.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Context;
use std::thread::{self, ThreadId};

use futures::future::BoxFuture;
use waterwheel::{Duration, Instant, sleep_until};

use crate::support::{ms, multi_thread, waker_on_wake};

/// How long the worker is blocked.
const BLOCKED: Duration = Duration::from_secs(1);
/// From a deadline of the blocking task to one of the task beside it, and back.
const STEP: Duration = ms(50);
/// A round on a busy machine may go wrong; so many in a row do not.
const MOST_ROUNDS: usize = 5;
/// A round may go well by chance: the other worker took the wake-up over. So many in a row do not.
const LEAST_ROUNDS: usize = 3;

type SleepUntil = fn(Instant) -> BoxFuture<'static, ()>;

fn ours(deadline: Instant) -> BoxFuture<'static, ()> {
    Box::pin(sleep_until(deadline))
}

fn tokios(deadline: Instant) -> BoxFuture<'static, ()> {
    Box::pin(tokio::time::sleep_until(deadline))
}

/// Waits, and tells the thread that fired the sleep: the one that ran its driver.
async fn fired_by(mut sleep: BoxFuture<'static, ()>) -> Option<ThreadId> {
    let thread = Arc::new(Mutex::new(None));
    poll_fn(|context| {
        let waker = waker_on_wake({
            let (thread, task) = (Arc::clone(&thread), context.waker().clone());
            move || {
                *thread.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(thread::current().id());
                task.wake_by_ref();
            }
        });
        sleep.as_mut().poll(&mut Context::from_waker(&waker))
    })
    .await;
    *thread.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How late a sleep `beside` is, if the worker that fired the `blocking` one was blocked by its task
/// before that was due. Another worker has nothing to do.
fn lateness(blocking: SleepUntil, beside: SleepUntil) -> Duration {
    multi_thread(2).block_on(async move {
        let start = Instant::now() + STEP;
        let is_blocked = Arc::new(AtomicBool::new(false));
        let blocker = tokio::spawn({
            let is_blocked = Arc::clone(&is_blocked);
            async move {
                for round in 0.. {
                    let driver = fired_by(blocking(start + STEP * 2 * round)).await;
                    // Else the other worker took the task over: once more.
                    if driver == Some(thread::current().id()) {
                        is_blocked.store(true, Ordering::SeqCst);
                        return thread::sleep(BLOCKED);
                    }
                }
            }
        });
        let beside = tokio::spawn(async move {
            let mut deadline = start + STEP;
            loop {
                beside(deadline).await;
                if is_blocked.load(Ordering::SeqCst) {
                    return deadline.elapsed();
                }
                deadline += STEP * 2;
            }
        });
        let late = beside.await.expect("it does not panic");
        blocker.await.expect("it does not panic");
        late
    })
}

// tokio#4730. A worker that comes back from tokio's clock with one task in hand wakes no other to
// wait there in its place; so while that task blocks, nobody does.
#[test]
fn while_a_worker_is_blocked_tokios_timers_wait_for_it_and_ours_fire_within_ten_milliseconds() {
    let waited = || lateness(tokios, tokios) > BLOCKED * 4 / 5;
    assert!((0..MOST_ROUNDS).any(|_| waited()), "tokio's did not wait");
    // The second time, with nobody waiting on tokio's clock either.
    for blocking in [ours as SleepUntil, tokios] {
        let mut rounds = Vec::new();
        let mut is_shown = false;
        while rounds.len() < LEAST_ROUNDS || !is_shown && rounds.len() < MOST_ROUNDS {
            let late = lateness(blocking, ours);
            is_shown |= late < ms(10);
            rounds.push(late);
        }
        // Not one of them waited for the worker, however busy the machine.
        let held_up = rounds.iter().any(|&late| late > BLOCKED / 2);
        assert!(is_shown && !held_up, "{rounds:?}");
    }
}
