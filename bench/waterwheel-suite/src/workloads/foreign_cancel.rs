//! `foreign cancel`: makes a 30 s sleep and polls it once on one worker, and drops it on the other.
//!
//! This happens to a connection that is accepted on one worker and closed on another, and when a work-stealing runtime moves
//! a task between the two. A timer with a wheel for each worker has to access the other worker's here.
//!
//! Two tasks, one on each worker, hand each other batches of armed sleeps, in step: each arms a batch, gives it to the
//! other, waits for the other's batch, and drops its sleeps one by one. The two batches go back and forth, and nothing
//! is allocated. An operation is one sleep that is armed and one that is dropped; it includes the hand-over, and the
//! wait for the slower task. The floor locks the slab of the task that armed.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::task::yield_now;
use waterwheel_suite::Sample;

use crate::contestant::{Measure, Sleeps, Start, everyone};
use crate::crew::Crew;
use crate::engine::{self, Load, Share, WARM_UP};
use crate::operation::{LONG, arm};
use crate::stage::{BATCH, WORKERS};
use crate::workload::Workload;

const TITLE: &str = "foreign cancel";

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let load = Load::new(WORKERS, 0, quick);
    vec![Workload {
        work: format!("{}, {BATCH} sleeps a hand-over", load.work()),
        ..load.workload(TITLE.to_owned(), everyone(Measured(load)))
    }]
}

#[derive(Clone, Copy)]
struct Measured(Load);

impl Measure for Measured {
    fn sample<S: Sleeps>(self, start: impl Start<S>) -> Sample {
        let Self(load) = self;
        let pair = move || Pair {
            sleeps: start(),
            exchange: Arc::default(),
        };
        let task = |pair: Pair<S>, me, crew| pair.side(me).run(load.measured(), crew);
        engine::measure_tasks(load.threads, pair, task, engine::nanos_each)
    }
}

/// The state of both tasks.
struct Pair<S: Sleeps> {
    sleeps: S,
    exchange: Arc<Exchange<S::Sleep>>,
}

impl<S: Sleeps> Clone for Pair<S> {
    fn clone(&self) -> Self {
        Self {
            sleeps: self.sleeps.clone(),
            exchange: self.exchange.clone(),
        }
    }
}

impl<S: Sleeps> Pair<S> {
    fn side(self, me: usize) -> Side<S> {
        Side {
            me,
            sleeps: self.sleeps,
            exchange: self.exchange,
            batch: (0..BATCH).map(|_| Box::pin(None)).collect(),
            stretch: Stretch::WarmUp,
        }
    }
}

/// For each task, the parcels from the other: two at most, since the tasks are in step.
struct Exchange<T>([Mutex<VecDeque<Parcel<T>>>; WORKERS]);

impl<T> Default for Exchange<T> {
    fn default() -> Self {
        Self([0, 1].map(|_| Mutex::default()))
    }
}

impl<T> Exchange<T> {
    fn of(&self, task: usize) -> MutexGuard<'_, VecDeque<Parcel<T>>> {
        self.0[task].lock().expect("nothing panics under this lock")
    }
}

/// Armed sleeps, and the giver's current stretch.
struct Parcel<T> {
    batch: Batch<T>,
    stretch: Stretch,
}

/// Each sleep is in a place that stays when it is dropped.
type Batch<T> = Vec<Pin<Box<Option<T>>>>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stretch {
    WarmUp,
    Measured,
    Over,
}

/// One of the two tasks. The first reads the clock, and the other follows it, so that both make the same steps.
struct Side<S: Sleeps> {
    me: usize,
    sleeps: S,
    exchange: Arc<Exchange<S::Sleep>>,
    batch: Batch<S::Sleep>,
    stretch: Stretch,
}

impl<S: Sleeps> Side<S> {
    async fn run(mut self, measured: Duration, crew: Arc<Crew>) -> Share {
        crew.take_a_worker();
        let mut start = Instant::now();
        let mut operations = 0;
        while self.stretch != Stretch::Over {
            let before = self.stretch;
            self.stretch = match before {
                Stretch::WarmUp if start.elapsed() >= WARM_UP => Stretch::Measured,
                Stretch::Measured if start.elapsed() >= measured => Stretch::Over,
                _ => before,
            };
            self.step().await;
            if before == Stretch::Measured {
                operations += BATCH;
            } else if self.stretch == Stretch::Measured {
                start = Instant::now();
            }
            crew.goes_on(self.me, false);
        }
        Share {
            operations,
            start,
            end: Instant::now(),
        }
    }

    /// Arms a batch, gives it away, and drops the sleeps of the batch that it gets in return.
    async fn step(&mut self) {
        poll_fn(|context| {
            self.arm_all(context);
            Poll::Ready(())
        })
        .await;
        let parcel = Parcel {
            batch: mem::take(&mut self.batch),
            stretch: self.stretch,
        };
        self.exchange.of(1 - self.me).push_back(parcel);

        let parcel = self.take().await;
        self.batch = parcel.batch;
        if self.me == 1 {
            self.stretch = parcel.stretch;
        }
        for place in &mut self.batch {
            place.set(None);
        }
    }

    fn arm_all(&mut self, context: &mut Context<'_>) {
        for place in &mut self.batch {
            place.set(Some(self.sleeps.sleep(LONG)));
            let sleep = place.as_mut().as_pin_mut();
            arm(sleep.expect("just put there"), context);
        }
    }

    /// Takes a parcel. Yields at least once, like each batch of the other workloads.
    async fn take(&mut self) -> Parcel<S::Sleep> {
        loop {
            yield_now().await;
            if let Some(parcel) = self.exchange.of(self.me).pop_front() {
                return parcel;
            }
        }
    }
}
