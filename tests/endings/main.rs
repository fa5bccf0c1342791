//! Runtimes that end while everything is in progress: tasks in the middle of a poll, loops of each kind, threads that block on
//! a future, callbacks and drains.
//!
//! `WATERWHEEL_ROUNDS=100000 cargo test --release --test endings` runs this many rounds. A failing seed is printed;
//! `WATERWHEEL_SEED` starts from it.

#[path = "../support/mod.rs"]
mod support;

use std::env;
use std::future::{Future, pending};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use futures::{StreamExt as _, stream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::unconstrained;
use waterwheel::ext::StreamExt as _;
use waterwheel::rpc::{Deadline, IdleTimeout};
use waterwheel::{DelayQueue, ManualClock, Timer, interval, sleep, timeout};

use crate::support::{Dice, HOUR, WAKINGS, current_thread, eventually, ms, panic_of, us, within};

/// The ways to wait for an hour.
#[derive(Debug, Clone, Copy)]
enum Wait {
    Sleep,
    OwnSleep,
    Timeout,
    OwnTimeout,
    Interval,
    TryTick,
    Ticks,
    Queue,
    QueueOfHandles,
    Guard,
    Scope,
    Stream,
    Repeating,
}

const WAITS: [Wait; 13] = [
    Wait::Sleep,
    Wait::OwnSleep,
    Wait::Timeout,
    Wait::OwnTimeout,
    Wait::Interval,
    Wait::TryTick,
    Wait::Ticks,
    Wait::Queue,
    Wait::QueueOfHandles,
    Wait::Guard,
    Wait::Scope,
    Wait::Stream,
    Wait::Repeating,
];

/// The result of waiting for an hour, unless it panicked.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    /// The wait completed as if the hour had passed.
    Completed,
    /// An error or the end of a stream, which report that the timer is gone.
    Ended,
}

impl Wait {
    async fn wait(self, timer: &Timer) -> Outcome {
        match self {
            Wait::Sleep => sleep(HOUR).await,
            Wait::OwnSleep => timer.sleep(HOUR).await,
            Wait::Timeout => drop(timeout(HOUR, pending::<()>()).await),
            Wait::OwnTimeout => drop(timer.timeout(HOUR, pending::<()>()).await),
            Wait::Interval => {
                let mut ticks = interval(HOUR);
                ticks.tick().await;
                ticks.tick().await;
            }
            Wait::TryTick => {
                let mut ticks = timer.interval(HOUR);
                for _ in 0..2 {
                    if ticks.try_tick().await.is_err() {
                        return Outcome::Ended;
                    }
                }
            }
            Wait::Ticks => {
                let mut ticks = timer.interval(HOUR);
                for _ in 0..2 {
                    if ticks.next().await.is_none() {
                        return Outcome::Ended;
                    }
                }
            }
            Wait::Queue => {
                let mut queue = DelayQueue::on(timer);
                queue.insert((), HOUR);
                if queue.next().await.is_none() {
                    return Outcome::Ended;
                }
            }
            Wait::QueueOfHandles => {
                let mut queue = DelayQueue::<()>::on(timer);
                let _handle = queue.handle();
                assert!(queue.next().await.is_none());
                return Outcome::Ended;
            }
            Wait::Guard => drop(IdleTimeout::on(timer, HOUR).guard(pending::<()>()).await),
            Wait::Scope => drop(Deadline::after(HOUR).scope(pending::<()>()).await),
            Wait::Stream => {
                let mut items = Box::pin(stream::pending::<()>().timeout(HOUR));
                items.next().await;
            }
            Wait::Repeating => {
                let ticks = timer.interval_at(timer.now() + HOUR, HOUR);
                let mut items = Box::pin(stream::pending::<()>().timeout_repeating(ticks));
                items.next().await;
            }
        }
        Outcome::Completed
    }

    /// Waits for one hour after the other, and counts the waits that were too short. Returns if the timer is gone.
    async fn repeat(self, timer: &Timer, early: &AtomicU64) {
        while self.wait(timer).await == Outcome::Completed {
            // A loop that spins would never end.
            if early.fetch_add(1, Ordering::SeqCst) > 1000 {
                return;
            }
        }
    }
}

/// The observations of a round.
#[derive(Default)]
struct Facts {
    /// The number of hour-long waits that completed, and of sleeps that completed before their deadline.
    early: AtomicU64,
    /// The number of waits in tasks of the runtime that found no timer.
    ended: AtomicU64,
    /// The number of tasks of the runtime that have not been dropped.
    alive: AtomicUsize,
    /// The number of tasks of the runtime that panicked.
    panicked: AtomicU64,
    /// The number of tasks that are in the middle of a poll.
    busy: AtomicUsize,
    /// Whether the busy tasks may continue.
    goes_on: AtomicBool,
}

/// A token owned by a task of the runtime.
struct InTask(Arc<Facts>);

impl InTask {
    fn new(facts: &Arc<Facts>) -> InTask {
        facts.alive.fetch_add(1, Ordering::SeqCst);
        InTask(Arc::clone(facts))
    }
}

impl Drop for InTask {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.panicked.fetch_add(1, Ordering::SeqCst);
        }
        self.0.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How a runtime ends.
#[derive(Debug, Clone, Copy)]
enum Ends {
    Dropped,
    InBackground,
    WithTimeout,
}

/// Starts a runtime. Zero workers mean a current-thread runtime. A timer on a manual clock lives on a runtime without `enable_time`.
fn runtime(workers: usize, has_time: bool) -> Runtime {
    if workers == 0 && has_time {
        return current_thread();
    }
    let mut builder = match workers {
        0 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if workers > 0 {
        builder.worker_threads(workers);
    }
    if has_time {
        builder.enable_time();
    }
    builder.build().expect("a runtime")
}

/// Plays the life of one runtime, from start to end.
fn round(seed: u64) {
    let mut dice = Dice(seed);
    let workers = dice.roll(5) as usize;
    let by_hand = dice.roll(8) == 0;
    let ends = [Ends::Dropped, Ends::InBackground, Ends::WithTimeout][dice.roll(3) as usize];
    let runtime = runtime(workers, !by_hand);
    let facts = Arc::new(Facts::default());
    let mut builder = Timer::builder().waking(WAKINGS[dice.roll(WAKINGS.len() as u64) as usize]);
    if by_hand {
        builder = builder.clock(ManualClock::new());
    }
    let timer = builder.start_on(runtime.handle()).expect("a timer");
    // A runtime without `enable_time` has only the timer on a manual clock.
    let wait = |dice: &mut Dice| loop {
        let wait = WAITS[dice.roll(WAITS.len() as u64) as usize];
        let uses_current = matches!(
            wait,
            Wait::Sleep | Wait::Timeout | Wait::Interval | Wait::Scope | Wait::Stream
        );
        // Only advancing the manual clock brings its first tick.
        let ticks = matches!(wait, Wait::TryTick | Wait::Ticks);
        if !(by_hand && (uses_current || ticks)) {
            return wait;
        }
    };

    for _ in 0..=dice.roll(4) {
        let (wait, for_long, is_unconstrained) =
            (wait(&mut dice), us(dice.roll(800)), dice.roll(2) == 0);
        let (in_task, timer) = (InTask::new(&facts), timer.clone());
        let task = async move {
            let facts = &in_task.0;
            if workers > 0 {
                facts.busy.fetch_add(1, Ordering::SeqCst);
                while !facts.goes_on.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                thread::sleep(for_long);
            }
            wait.repeat(&timer, &facts.early).await;
            facts.ended.fetch_add(1, Ordering::SeqCst);
        };
        spawn(&runtime, is_unconstrained, task);
    }
    if !by_hand {
        let in_task = InTask::new(&facts);
        runtime.spawn(async move {
            let facts = &in_task.0;
            loop {
                let nap = sleep(ms(1));
                let deadline = nap.deadline();
                nap.await;
                if waterwheel::Instant::now() < deadline {
                    facts.early.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
    }
    let elsewhere = elsewhere(&mut dice, &runtime, &timer, &facts, wait);
    let callback = timer.call_after(HOUR, || panic!("it runs an hour early"));
    if workers > 0 {
        eventually("a task is busy", || facts.busy.load(Ordering::SeqCst) > 0);
    } else {
        runtime.block_on(async { tokio::task::yield_now().await });
    }

    let goes_on = {
        let (facts, after) = (Arc::clone(&facts), us(dice.roll(600)));
        thread::spawn(move || {
            thread::sleep(after);
            facts.goes_on.store(true, Ordering::SeqCst);
        })
    };
    match ends {
        Ends::Dropped => drop(runtime),
        Ends::InBackground => runtime.shutdown_background(),
        Ends::WithTimeout => runtime.shutdown_timeout(ms(2)),
    }
    goes_on.join().expect("it does not panic");
    for thread in elsewhere {
        thread.join().expect("its panic was caught");
    }
    eventually("the runtime ends", || timer.try_sleep(HOUR).is_err());
    // A drain would refuse new timers of these tasks.
    eventually("its tasks are dropped", || {
        facts.alive.load(Ordering::SeqCst) == 0
    });
    // A drain of a timer whose runtime has ended waits for nothing.
    futures::executor::block_on(timer.drain());
    eventually("the callback is cancelled", || callback.is_cancelled());
    assert_eq!(facts.early.load(Ordering::SeqCst), 0, "early");
    let ended = facts.ended.load(Ordering::SeqCst);
    assert_eq!(ended, 0, "not pending in a task");
    let panicked = facts.panicked.load(Ordering::SeqCst);
    assert_eq!(panicked, 0, "a task of the runtime panicked");
}

fn spawn(
    runtime: &Runtime,
    is_unconstrained: bool,
    task: impl Future<Output = ()> + Send + 'static,
) {
    match is_unconstrained {
        true => runtime.spawn(unconstrained(task)),
        false => runtime.spawn(task),
    };
}

/// Waits outside the runtime's tasks. Each wait panics with advice, or finds that the timer is gone.
fn elsewhere(
    dice: &mut Dice,
    runtime: &Runtime,
    timer: &Timer,
    facts: &Arc<Facts>,
    wait: impl Fn(&mut Dice) -> Wait,
) -> Vec<thread::JoinHandle<()>> {
    (0..dice.roll(3))
        .map(|_| {
            let (wait, timer, facts) = (wait(dice), timer.clone(), Arc::clone(facts));
            let (home, place) = (runtime.handle().clone(), dice.roll(3));
            let (began, begins) = std::sync::mpsc::channel();
            let waits = move || {
                let _ = began.send(());
                let repeats = unconstrained(wait.repeat(&timer, &facts.early));
                match place {
                    0 => futures::executor::block_on(within_context(&home, repeats)),
                    _ => home.block_on(repeats),
                }
            };
            let caught = move || {
                let ended = AtomicBool::new(false);
                let panicked = panic_of(|| {
                    waits();
                    ended.store(true, Ordering::SeqCst);
                    panic!("the runtime of this timer has ended, says an error");
                });
                let message = panicked.message;
                assert!(
                    message.contains("the runtime of this timer has ended")
                        || says_shutdown(&message),
                    "{message}"
                );
            };
            let thread = match place {
                1 => {
                    let blocking = runtime.spawn_blocking(caught);
                    thread::spawn(move || match futures::executor::block_on(blocking) {
                        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                        // The task may have been ended before it began.
                        _ => {}
                    })
                }
                _ => thread::spawn(caught),
            };
            let _ = begins.recv();
            thread
        })
        .collect()
}

/// Whether this is the message of an infallible call to a timer whose runtime has ended.
fn says_shutdown(message: &str) -> bool {
    message.contains("accepts nothing new")
}

/// Polls within the context of a runtime, but on none of its workers.
async fn within_context<F: Future>(home: &Handle, future: F) -> F::Output {
    let mut future = Box::pin(future);
    std::future::poll_fn(|context| {
        let _entered = home.enter();
        future.as_mut().poll(context)
    })
    .await
}

fn number(variable: &str) -> Option<u64> {
    let value = env::var(variable).ok()?;
    Some(value.parse().expect("a whole number"))
}

#[test]
fn endings_complete_nothing_early_and_hold_up_nobody() {
    let rounds = number("WATERWHEEL_ROUNDS").unwrap_or(300);
    let first = number("WATERWHEEL_SEED").unwrap_or(1);
    let start = Instant::now();
    for seed in first..first + rounds {
        let outcome = catch_unwind(|| within(ms(60_000), move || round(seed)));
        if let Err(payload) = outcome {
            eprintln!("WATERWHEEL_SEED={seed} repeats the round that failed");
            resume_unwind(payload);
        }
    }
    if rounds > 1000 {
        eprintln!("{rounds} rounds in {:?}", start.elapsed());
    }
}
