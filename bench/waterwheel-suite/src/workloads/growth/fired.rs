//! CPU time per timer in a steady stream of timers, as a growing share of them fires.
//!
//! Once a millisecond, the main thread sends a signal to two tasks. At each signal a task makes 50 sleeps and polls each
//! once. Sleeps that should fire are due in 1 to 10 ms at random, the others in 30 s; each is dropped 20 ms after it was
//! made. The figure includes the signals and two allocations per timer, the same for all contestants.
//!
//! The wakers count. If one in fifty of the sleeps that should fire was dropped before it did, the machine was busy with
//! something else, and the sample is taken again.

use std::collections::VecDeque;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::sync::mpsc;
use waterwheel_bench_kit::random;
use waterwheel_suite::{Metric, Sample};

use super::climb;
use crate::contestant::{Measure, Sleeps, Start};
use crate::cpu;
use crate::operation::LONG;
use crate::stage::{Stage, WORKERS};
use crate::workload::Workload;

const METRICS: &[Metric] = &[
    Metric::lower("0 % fire", "ns"),
    Metric::lower("1 % fire", "ns"),
    Metric::lower("10 % fire", "ns"),
    Metric::lower("50 % fire", "ns"),
    Metric::lower("100 % fire", "ns"),
];
const PERCENT: [u64; 5] = [0, 1, 10, 50, 100];
/// The number of sleeps that a task makes at each signal: 100 k a second by both together.
const AT_A_TIME: usize = 50;
const SIGNAL_EVERY: Duration = Duration::from_millis(1);
const SHORT: Range<Duration> = Duration::from_millis(1)..Duration::from_millis(10);
/// The number of signals until a sleep is dropped.
const KEPT: usize = 20;
/// The number of signals before the CPU time is first read: more than the first sleeps are kept for.
const WARM_UP: u32 = 30;
const RETAKES: u64 = 4;

pub(super) fn workload(quick: bool) -> Workload {
    let measured = if quick { 50 } else { 300 };
    climb::workload(
        "share that fires",
        format!("CPU time a timer, 100 thousand timers a second for {measured} ms"),
        METRICS,
        Fired { measured },
    )
}

#[derive(Clone, Copy)]
struct Fired {
    /// The number of signals while the CPU time counts.
    measured: u32,
}

impl Measure for Fired {
    fn sample<S: Sleeps>(self, start: impl Start<S>) -> Sample {
        climb::joined(PERCENT.map(|percent| self.step(start, percent)))
    }
}

impl Fired {
    fn step<S: Sleeps>(self, start: impl Start<S>, percent: u64) -> Sample {
        let mut retaken = 0;
        loop {
            let (nanos, all_fired) = self.attempt(start, percent);
            if all_fired || retaken == RETAKES {
                return Sample {
                    values: vec![nanos],
                    retaken,
                    ..Sample::default()
                };
            }
            retaken += 1;
        }
    }

    /// CPU nanoseconds per timer, and whether (nearly) all sleeps that should fire did.
    fn attempt<S: Sleeps>(self, start: impl Start<S>, percent: u64) -> (f64, bool) {
        let stage = Stage::new();
        let sleeps = stage.run(async move { start() });
        let (signals, tasks): (Vec<_>, Vec<_>) = (0..WORKERS as u64)
            .map(|seed| {
                let (signal, signals) = mpsc::unbounded_channel();
                let stream = Stream::new(sleeps.clone(), percent, seed);
                (signal, stage.spawn(stream.run(signals)))
            })
            .unzip();
        let send = |times| {
            let start = Instant::now();
            for time in 1..=times {
                // Paced by the clock, so that a late signal does not delay the rest.
                thread::sleep(
                    (start + SIGNAL_EVERY * time).saturating_duration_since(Instant::now()),
                );
                for signal in &signals {
                    signal.send(()).expect("the task listens");
                }
            }
        };
        send(WARM_UP);
        let cpu = cpu::nanos_of(|| send(self.measured));
        thread::sleep(SIGNAL_EVERY * KEPT as u32);
        drop(signals);

        let streams: Vec<Stream<S>> = tasks.into_iter().map(|task| stage.wait(task)).collect();
        let to_fire: u64 = streams.iter().map(|stream| stream.to_fire).sum();
        let fired: u64 = streams
            .iter()
            .map(|stream| stream.fired.0.load(Relaxed))
            .sum();
        let made = self.measured as usize * AT_A_TIME * WORKERS;
        (cpu / made as f64, fired * 50 >= to_fire * 49)
    }
}

/// The futures that one task makes and drops.
struct Stream<S: Sleeps> {
    sleeps: S,
    percent: u64,
    random: Rng,
    /// The kept sleeps, the oldest first.
    kept: VecDeque<Vec<Pin<Box<S::Sleep>>>>,
    to_fire: u64,
    fired: Arc<Count>,
    waker: Waker,
}

impl<S: Sleeps> Stream<S> {
    fn new(sleeps: S, percent: u64, seed: u64) -> Self {
        let fired = Arc::new(Count::default());
        Self {
            sleeps,
            percent,
            random: Rng::with_seed(seed),
            kept: VecDeque::with_capacity(KEPT),
            to_fire: 0,
            waker: Waker::from(fired.clone()),
            fired,
        }
    }

    async fn run(mut self, mut signals: mpsc::UnboundedReceiver<()>) -> Self {
        while signals.recv().await.is_some() {
            if self.kept.len() == KEPT {
                self.kept.pop_front();
            }
            let made = (0..AT_A_TIME).map(|_| self.make()).collect();
            self.kept.push_back(made);
        }
        self
    }

    fn make(&mut self) -> Pin<Box<S::Sleep>> {
        let fires = self.random.u64(0..100) < self.percent;
        let delay = if fires {
            random::duration(&mut self.random, SHORT)
        } else {
            LONG
        };
        let mut sleep = Box::pin(self.sleeps.sleep(delay));
        let polled = sleep.as_mut().poll(&mut Context::from_waker(&self.waker));
        // If the thread was held up, the sleep may be ready at once, and wakes no waker.
        self.to_fire += u64::from(fires && polled.is_pending());
        sleep
    }
}

/// The number of wakes.
#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}
