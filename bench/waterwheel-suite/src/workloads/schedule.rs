//! `schedule`: jobs of `waterwheel-schedule` and callbacks, compared to the handwritten form: a task with a sleep for each.
//!
//! - *Submit + cancel*: 128 due in 30 s are submitted. The task yields, so that each handwritten sleep is armed. Then all are cancelled,
//!   and the task yields again, so that all handwritten tasks have ended.
//! - *Submit + run*: 1000 due in a millisecond are submitted, and awaited. Each returns a value, except the callbacks: the last of them
//!   wakes the waiting task.
//!
//! With two threads, two tasks do this concurrently, with one scheduler. The figure is CPU time of all threads, since *submit + run* mostly
//! waits. The row of the handwritten form is that of the sleeps: `tokio` is `tokio::spawn`, `tokio::time::sleep`, and an abort or a join.

use std::future::Future;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::yield_now;
use waterwheel::Timer;
use waterwheel_schedule::Scheduler;
use waterwheel_suite::{Metric, Sample, Target, Want};

use crate::contestant::{Current, Sleeps, Tokio};
use crate::cpu;
use crate::engine;
use crate::entrant::Entrant;
use crate::operation::LONG;
use crate::stage::{BATCH, Stage};
use crate::workload::Workload;

const CANCEL: &str = "submit + cancel";
const RUN: &str = "submit + run";
const METRICS: &[Metric] = &[Metric::lower(CANCEL, "ns"), Metric::lower(RUN, "ns")];
const SHORT: Duration = Duration::from_millis(1);
/// The number of jobs that are awaited at a time.
const HERD: usize = 1_000;

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let load = match quick {
        true => Load {
            cancelled: 64_000,
            run: 20_000,
        },
        false => Load {
            cancelled: 256_000,
            run: 100_000,
        },
    };
    let workload = |threads| Workload {
        title: title(threads),
        work: format!("{} cancelled, {} run, per thread", load.cancelled, load.run),
        metrics: METRICS,
        entrants: vec![
            entrant(Tokio::NAME, || ByHand(Tokio), threads, load),
            entrant(Current::NAME, || ByHand(Current), threads, load),
            entrant(JOBS, || Jobs(Scheduler::new()), threads, load),
            entrant(CALLBACKS, || Callbacks(Timer::current()), threads, load),
        ],
        absent: Vec::new(),
    };
    [1, 2].map(workload).into()
}

pub(crate) fn targets() -> Vec<Target> {
    let targets = [1, 2].map(|threads| {
        [(CANCEL, 1.5), (RUN, 1.2)].map(|(metric, at_least)| {
            Target::new(
                title(threads),
                metric,
                JOBS,
                Want::times(Tokio::NAME, at_least),
            )
        })
    });
    targets.into_iter().flatten().collect()
}

fn title(threads: usize) -> String {
    format!("schedule, {}", engine::threads(threads))
}

/// The number of operations of a task.
#[derive(Clone, Copy)]
struct Load {
    cancelled: usize,
    run: usize,
}

fn entrant<S: Schedules>(
    name: &'static str,
    start: impl FnOnce() -> S + Send + 'static,
    threads: usize,
    load: Load,
) -> Entrant {
    Entrant::new(name, move || {
        let stage = Stage::new();
        let contestant = stage.run(async { start() });
        let tasks = |batches, cancels| {
            let task = |_| stage.spawn(batches_of(contestant.clone(), batches, cancels));
            let tasks: Vec<_> = (0..threads).map(task).collect();
            tasks.into_iter().for_each(|task| stage.wait(task));
        };
        let measured = |operations, batch, cancels| {
            let batches = operations / batch;
            tasks(batches / 10, cancels);
            let nanos = cpu::nanos_of(|| tasks(batches, cancels));
            nanos / (batches * batch * threads) as f64
        };
        Sample::of(vec![
            measured(load.cancelled, BATCH, true),
            measured(load.run, HERD, false),
        ])
    })
}

async fn batches_of(contestant: impl Schedules, batches: usize, cancels: bool) {
    for _ in 0..batches {
        match cancels {
            true => contestant.cancel().await,
            false => contestant.run().await,
        }
    }
}

/// The operations that all contestants have.
trait Schedules: Clone + Send + Sync + 'static {
    /// Submits a batch and cancels it.
    fn cancel(&self) -> impl Future<Output = ()> + Send;

    /// Submits a herd and waits for it.
    fn run(&self) -> impl Future<Output = ()> + Send;
}

/// A task with a sleep.
#[derive(Clone)]
struct ByHand<S>(S);

impl<S: Sleeps> Schedules for ByHand<S> {
    async fn cancel(&self) {
        let task = |number| {
            let sleeps = self.0.clone();
            tokio::spawn(async move {
                sleeps.sleep(LONG).await;
                black_box(number);
            })
        };
        let tasks: Vec<_> = (0..BATCH).map(task).collect();
        yield_now().await;
        for task in tasks {
            task.abort();
        }
        yield_now().await;
    }

    async fn run(&self) {
        let task = |number| {
            let sleeps = self.0.clone();
            tokio::spawn(async move {
                sleeps.sleep(SHORT).await;
                black_box(number)
            })
        };
        let tasks: Vec<_> = (0..HERD).map(task).collect();
        for task in tasks {
            black_box(task.await.expect("it runs"));
        }
    }
}

const JOBS: &str = "scheduler";

#[derive(Clone)]
struct Jobs(Scheduler);

impl Schedules for Jobs {
    async fn cancel(&self) {
        let submit = |number| {
            self.0.after(LONG).run(move |_| async move {
                black_box(number);
            })
        };
        let jobs: Vec<_> = (0..BATCH).map(submit).collect();
        yield_now().await;
        for job in jobs {
            job.cancel();
        }
        yield_now().await;
    }

    async fn run(&self) {
        let submit = |number| {
            let job = self.0.after(SHORT);
            job.run(move |_| async move { Ok::<_, String>(black_box(number)) })
        };
        let jobs: Vec<_> = (0..HERD).map(submit).collect();
        for job in jobs {
            black_box(job.await.expect("it runs"));
        }
    }
}

const CALLBACKS: &str = "callbacks";

#[derive(Clone)]
struct Callbacks(Timer);

impl Schedules for Callbacks {
    async fn cancel(&self) {
        let submit = |number| {
            self.0.call_after(LONG, move || {
                black_box(number);
            })
        };
        let callbacks: Vec<_> = (0..BATCH).map(submit).collect();
        yield_now().await;
        for callback in callbacks {
            callback.cancel();
        }
        yield_now().await;
    }

    async fn run(&self) {
        let left = Arc::new((AtomicUsize::new(HERD), Notify::new()));
        for number in 0..HERD {
            let left = Arc::clone(&left);
            // The callback is detached.
            drop(self.0.call_after(SHORT, move || {
                black_box(number);
                if left.0.fetch_sub(1, AcqRel) == 1 {
                    left.1.notify_one();
                }
            }));
        }
        left.1.notified().await;
    }
}
