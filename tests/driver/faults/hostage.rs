//! No stalls behind a blocked worker: tokio's own timers stand still while the worker that last ran their driver is
//! blocked, but ours do not, unless their driver is `TokioOnly`. Deliberately in real time.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Context;
use std::thread::{self, JoinHandle, ThreadId};

use futures::future::BoxFuture;
use tokio::sync::oneshot;
use waterwheel::{Duration, Instant, Timer, Waking};

use crate::support::{ms, multi_thread, waker_on_wake};

/// How long the worker is blocked, unless the other sleep completes earlier.
const BLOCKED: Duration = Duration::from_secs(1);
/// How long it is blocked if that sleep should complete: a starved machine needs less, and a timer that
/// waits for the worker needs all of it.
const BLOCKED_LONG: Duration = Duration::from_secs(10);
/// The time from a deadline of the blocking task to one of the other task, and back.
const STEP: Duration = ms(50);
/// The maximum number of rounds. One may fail on a busy machine; this many in a row do not.
const MOST_ROUNDS: usize = 20;
/// The minimum number of rounds. One may succeed by chance, if the other worker took over the wake-up; this many in a row do not.
const LEAST_ROUNDS: usize = 3;

/// The library that a sleep belongs to.
#[derive(Clone, Copy)]
enum Whose {
    Tokios,
    Runtimes,
    Own(Waking),
}

impl Whose {
    /// Returns a function that makes sleeps on the current runtime.
    fn sleeps(self) -> impl Fn(Instant) -> BoxFuture<'static, ()> + Clone + Send + Sync + 'static {
        let timer = match self {
            Whose::Tokios => None,
            Whose::Runtimes => Some(Timer::current()),
            Whose::Own(waking) => Some(Timer::builder().waking(waking).start().expect("a timer")),
        };
        move |deadline| match &timer {
            Some(timer) => Box::pin(timer.sleep_until(deadline)),
            None => Box::pin(tokio::time::sleep_until(deadline)),
        }
    }
}

/// Waits, and returns the thread that fired the sleep, which ran its driver.
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

/// Plain threads for comparison: one sleeps until each of these deadlines and wakes another one, as the
/// watchdog thread wakes a worker. The lateness of the other one is that of the machine alone.
struct Control {
    threads: JoinHandle<Vec<(Instant, Duration)>>,
    last: Arc<Mutex<Option<Instant>>>,
}

impl Control {
    fn start(first: Instant, step: Duration) -> Control {
        let last = Arc::new(Mutex::new(None));
        let threads = thread::spawn({
            let last = Arc::clone(&last);
            move || {
                let (sender, receiver) = channel::<Instant>();
                let other = thread::spawn(move || {
                    receiver
                        .into_iter()
                        .map(|deadline| (deadline, deadline.elapsed()))
                        .collect()
                });
                let mut deadline = first;
                while last
                    .lock()
                    .expect("no poison")
                    .is_none_or(|last| deadline <= last)
                {
                    thread::sleep(deadline.saturating_duration_since(Instant::now()));
                    let _ = sender.send(deadline);
                    deadline += step;
                }
                drop(sender);
                other.join().expect("it does not panic")
            }
        });
        Control { threads, last }
    }

    /// How much later these sleeps were than the control for the same deadlines.
    fn later(self, late: &[(Instant, Duration)]) -> Vec<Duration> {
        *self.last.lock().expect("no poison") = late.last().map(|(last, _)| *last);
        let all = self.threads.join().expect("it does not panic");
        let later = late.iter().map(|(deadline, late)| {
            let found = all.iter().find(|(of, _)| of == deadline);
            late.saturating_sub(found.expect("one of its deadlines").1)
        });
        later.collect()
    }
}

#[derive(Debug)]
struct Round {
    /// How much later each sleep was than plain threads are for the same deadline.
    later: Vec<Duration>,
    /// Whether some did not complete before the worker was free again.
    waited: bool,
}

/// A task that blocks its worker.
struct Blocked {
    /// Whether it is blocking now.
    is_blocked: Arc<AtomicBool>,
    free: Sender<()>,
    /// Whether it was freed too late.
    waited: oneshot::Receiver<bool>,
}

/// Blocks the worker that fires one of these sleeps, by a task that awaited it and runs there. `tasks` tasks try; their sleeps are due at
/// `first` and every two steps after that.
///
/// Another worker may take over a woken task again and again, but not all of several.
fn block(
    sleeps: &(impl Fn(Instant) -> BoxFuture<'static, ()> + Clone + Send + Sync + 'static),
    tasks: usize,
    first: Instant,
    at_most: Duration,
) -> Blocked {
    let is_blocked = Arc::new(AtomicBool::new(false));
    let (free, freed) = channel();
    let (report, waited) = oneshot::channel();
    let block = Arc::new(Mutex::new(Some((freed, report))));
    for _ in 0..tasks {
        let (is_blocked, block) = (Arc::clone(&is_blocked), Arc::clone(&block));
        let sleeps = sleeps.clone();
        tokio::spawn(async move {
            for round in 0.. {
                let driver = fired_by(sleeps(first + STEP * 2 * round)).await;
                if driver != Some(thread::current().id()) {
                    // The task was taken over. Keep its new worker busy meanwhile.
                    thread::sleep(ms(1));
                    continue;
                }
                // Not in the `if` condition, which would hold the lock while it blocks.
                let first = block.lock().expect("no poison").take();
                if let Some((freed, report)) = first {
                    is_blocked.store(true, Ordering::SeqCst);
                    let _ = report.send(freed.recv_timeout(at_most).is_err());
                }
                return;
            }
        });
    }
    Blocked {
        is_blocked,
        free,
        waited,
    }
}

impl Blocked {
    fn is_blocked(&self) -> bool {
        self.is_blocked.load(Ordering::SeqCst)
    }

    /// Frees the worker, and returns whether it had waited for too long.
    async fn free(self) -> bool {
        let _ = self.free.send(());
        self.waited.await.expect("it does not panic")
    }
}

/// Measures sleeps of `beside`, one after the other, while the worker that fired the `blocking` one is blocked by its task
/// before the first of them is due. Another worker is idle.
fn round(
    blocking: Whose,
    tasks: usize,
    (beside, count): (Whose, usize),
    blocked: Duration,
) -> Round {
    let start = Instant::now() + STEP;
    let control = Control::start(start + STEP, STEP * 2);
    let (late, waited) = multi_thread(2).block_on(async move {
        let (blocking, beside) = (blocking.sleeps(), beside.sleeps());
        let blocked = block(&blocking, tasks, start, blocked);
        let beside = tokio::spawn(async move {
            let mut deadline = start + STEP;
            let mut late = Vec::new();
            loop {
                beside(deadline).await;
                if blocked.is_blocked() {
                    late.push((deadline, deadline.elapsed()));
                }
                if late.len() == count {
                    return (late, blocked.free().await);
                }
                deadline += STEP * 2;
            }
        });
        beside.await.expect("it does not panic")
    });
    Round {
        later: control.later(&late),
        waited,
    }
}

/// Like [`round`], with two sleeps on the runtime's timer: a worker is blocked before each, and a third one is idle.
fn round_of_two() -> Round {
    let start = Instant::now() + STEP;
    let control = Control::start(start + STEP, STEP * 2);
    let (late, waited) = multi_thread(3).block_on(async move {
        let (tokios, sleeps) = (Whose::Tokios.sleeps(), Whose::Runtimes.sleeps());
        let beside = tokio::spawn(async move {
            let first = block(&tokios, 1, start, BLOCKED_LONG);
            let mut deadline = start + STEP;
            let mut late = Vec::new();
            while late.is_empty() {
                sleeps(deadline).await;
                if first.is_blocked() {
                    late.push((deadline, deadline.elapsed()));
                }
                deadline += STEP * 2;
            }
            let second = block(&tokios, 1, deadline + STEP, BLOCKED_LONG);
            while late.len() < 2 {
                sleeps(deadline).await;
                if second.is_blocked() {
                    late.push((deadline, deadline.elapsed()));
                }
                deadline += STEP * 2;
            }
            let waited = second.free().await;
            (late, first.free().await || waited)
        });
        beside.await.expect("it does not panic")
    });
    Round {
        later: control.later(&late),
        waited,
    }
}

// tokio#4730. A worker that comes back from tokio's clock with one task in hand wakes no other to
// wait there instead; so while that task blocks, no worker does.
#[test]
fn beside_a_blocked_worker_ours_fire_and_tokios_wait_for_it() {
    let waited = || round(Whose::Tokios, 1, (Whose::Tokios, 1), BLOCKED).waited;
    assert!((0..MOST_ROUNDS).any(|_| waited()), "tokio's did not wait");
    for (ours, first) in [
        (Whose::Runtimes, ms(55)),
        (Whose::Own(Waking::Watched), ms(55)),
        (Whose::Own(Waking::WatchedClosely), ms(10)),
        (Whose::Own(Waking::Thread), ms(10)),
    ] {
        // The second time, with no task waiting on tokio's clock either.
        for (blocking, tasks) in [(ours, 8), (Whose::Tokios, 1)] {
            let mut rounds = Vec::new();
            let mut is_shown = false;
            while rounds.len() < LEAST_ROUNDS || !is_shown && rounds.len() < MOST_ROUNDS {
                // Later sleeps are on time: by now a free worker awaits tokio's clock. The next test blocks that one as well.
                let round = round(blocking, tasks, (ours, 5), BLOCKED_LONG);
                // This holds however busy the machine is.
                assert!(!round.waited, "{round:?}, after {rounds:?}");
                let next = round.later[1..].iter().all(|later| *later < ms(10));
                is_shown |= round.later[0] < first && next;
                rounds.push(round);
            }
            assert!(is_shown, "{rounds:?}");
        }
    }
}

// The worker that the thread woke is blocked as well. The thread is now alert, and notices sooner than the first time.
#[test]
fn a_second_worker_that_is_blocked_within_a_second_is_noticed_sooner() {
    let mut rounds = Vec::new();
    let is_shown = (0..MOST_ROUNDS).any(|_| {
        let round = round_of_two();
        assert!(!round.waited, "{round:?}, after {rounds:?}");
        let is_shown = (ms(15)..ms(55)).contains(&round.later[0])
            // Less would mean that a worker turned tokio's clock, so that the thread had nothing to notice.
            && (ms(5)..ms(10)).contains(&round.later[1]);
        rounds.push(round);
        is_shown
    });
    assert!(is_shown, "{rounds:?}");
}

// The promise that `TokioOnly` gives up, and a check that the test above can fail.
#[test]
fn beside_a_blocked_worker_a_timer_of_tokio_only_waits_too() {
    let tokio_only = Whose::Own(Waking::TokioOnly);
    let waited = || round(tokio_only, 1, (tokio_only, 1), BLOCKED).waited;
    assert!((0..MOST_ROUNDS).any(|_| waited()), "it did not wait");
}
