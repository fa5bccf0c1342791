//! `cancel/fresh-task`: makes a 30 s sleep, polls it once to `Pending`, and drops it, each in its own task.
//!
//! Here a timer gains nothing from data that it keeps for a task between two sleeps. A batch of tasks is spawned, and the
//! next batch when all of them have run; the other worker steals some of them, even if only one task spawns. Within the
//! same sample, the same tasks without the sleep are measured alternately. The verdict is on the difference, since the
//! spawn costs several times as much as the timer.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use waterwheel_suite::{Metric, Sample, Target};

use crate::contestant::{Measure, Sleeps, Start, Tokio, everyone};
use crate::engine::{self, Load};
use crate::operation::{LONG, Operation, arm};
use crate::targets::both_beat;
use crate::workload::Workload;

const METRICS: &[Metric] = &[
    Metric::lower("one task", "ns"),
    Metric::lower("the spawn alone", "ns"),
    Metric::lower(NET, "ns"),
];
/// The number of measurements of each per sample: the difference of two similar figures needs both to be precise.
const TURNS: u64 = 3;
const NET: &str = "net of the spawn";
const THREADS: usize = 2;
/// The minimum result: a difference of two measurements can be anything, but no operation takes less (ns).
const LEAST: f64 = 1.0;

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let load = Load::new(THREADS, 0, quick);
    vec![Workload {
        title: title(),
        work: format!("{TURNS} times {} with the sleep, and without", load.work()),
        metrics: METRICS,
        entrants: everyone(Measured(load)),
        absent: Vec::new(),
    }]
}

pub(crate) fn targets() -> Vec<Target> {
    both_beat(Tokio::NAME, &title(), NET, [4.0, 2.5]).into()
}

fn title() -> String {
    format!("cancel/fresh-task, {}", engine::threads(THREADS))
}

#[derive(Clone, Copy)]
struct Measured(Load);

impl Measure for Measured {
    fn sample<S: Sleeps>(self, start: impl Start<S>) -> Sample {
        let (mut one_task, mut alone, mut retaken) = (0.0, 0.0, 0);
        for _ in 0..TURNS {
            let with = engine::sample(self.0, start, Spawn::<S, true>::new);
            let without = engine::sample(self.0, start, Spawn::<S, false>::new);
            one_task += with.values[0] / TURNS as f64;
            alone += without.values[0] / TURNS as f64;
            retaken += with.retaken + without.retaken;
        }
        Sample {
            values: vec![one_task, alone, (one_task - alone).max(LEAST)],
            retaken,
            ..Sample::default()
        }
    }
}

/// Spawns tasks, with a sleep in them or without.
struct Spawn<S, const SLEEP: bool> {
    spawned: usize,
    shared: Arc<Shared<S>>,
}

/// The state that the tasks of one spawner share. Tasks without a sleep hold it too, so its reference count is part of the spawn.
struct Shared<S> {
    sleeps: S,
    over: AtomicUsize,
}

impl<S, const SLEEP: bool> Spawn<S, SLEEP> {
    fn new(sleeps: S, _: u64) -> Self {
        let over = AtomicUsize::new(0);
        Self {
            spawned: 0,
            shared: Arc::new(Shared { sleeps, over }),
        }
    }
}

impl<S: Sleeps, const SLEEP: bool> Operation for Spawn<S, SLEEP> {
    fn once(&mut self, _: &mut Context<'_>) {
        let shared = self.shared.clone();
        self.spawned += 1;
        tokio::spawn(async move {
            if SLEEP {
                poll_fn(|context| {
                    arm(pin!(shared.sleeps.sleep(LONG)), context);
                    Poll::Ready(())
                })
                .await;
            }
            shared.over.fetch_add(1, Relaxed);
        });
    }

    fn is_settled(&self) -> bool {
        self.shared.over.load(Relaxed) == self.spawned
    }
}
