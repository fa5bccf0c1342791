//! One sample: spawn, wait, evaluate.
//!
//! Two tasks, each on its own worker, spawn the services, so that both workers arm timers. Every service has been
//! polled before the first timer is due, or the sample is taken again with twice the time to arm. The cost is counted
//! from just before the first deadline until just after the last timer fired. One more timer, an hour away, is pending
//! throughout, so that no helper thread ends with the last sleep and takes its CPU time with it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

use fastrand::Rng;
use tokio::task::yield_now;
use waterwheel_suite::Sample;

use crate::armed::{self, instant, nanos, now, wait_until};
use crate::contestant::{Measure, Sleeps, Start};
use crate::cpu::{self, Cost};
use crate::crew::Crew;
use crate::lateness::Fired;
use crate::lead;
use crate::patience;
use crate::stage::{BATCH, Stage, WORKERS};

/// The percentiles, in the order of the metrics.
const PERCENTILES: [f64; 4] = [0.1, 0.5, 0.9, 0.99];

/// The pause after the last task's start, and the one between the first reading of the cost and the first deadline.
const CALM: Duration = Duration::from_millis(50);
/// The estimated time to spawn a service and to arm its timer.
const TO_ARM: Duration = Duration::from_nanos(1200);

/// The number of due timers a second, and the duration.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) rate: usize,
    pub(super) window: Duration,
}

impl Load {
    fn timers(self) -> usize {
        self.rate * self.window.as_millis() as usize / 1000
    }
}

impl Measure for Load {
    fn sample<S: Sleeps>(self, start: impl Start<S>) -> Sample {
        let guess = CALM * 3 + TO_ARM * self.timers() as u32;
        lead::long_enough(guess, |lead| attempt(start, self, lead))
    }
}

/// Takes a sample. `None` if the timers were not armed in time.
fn attempt<S: Sleeps>(start: impl Start<S>, load: Load, lead: Duration) -> Option<Sample> {
    let stage = Stage::new();
    let sleeps = stage.run(async move { start() });
    let far = stage.run(armed::far(sleeps.clone()));
    let first = now() + nanos(lead);
    let last = first + nanos(load.window);
    let all = All::due_within(first, last, load.timers());

    let crew = Arc::new(Crew::new(WORKERS));
    let (one, other) = all.timers.split_at(load.timers() / WORKERS);
    let tasks = [one, other]
        .map(|half| stage.spawn(start_services(sleeps.clone(), half, all, crew.clone())));
    for task in tasks {
        stage.wait(task);
    }
    if now() + 2 * nanos(CALM) > first {
        return None;
    }

    wait_until(first - nanos(CALM));
    let cost = cpu::cost_of(|| {
        wait_until(last + nanos(CALM));
        patience::wait_for(|| all.timers.iter().all(|timer| timer.fired().is_some()));
    });
    drop(far);
    Some(evaluate(all, &cost))
}

/// The state that the services share. Leaked, which saves each of them a counted reference: the process ends with the sample.
struct All {
    timers: Vec<OneTimer>,
    started: AtomicUsize,
}

struct OneTimer {
    deadline: u64,
    /// When its task ran, 0 if it has not.
    fired: AtomicU64,
}

impl All {
    fn due_within(first: u64, last: u64, timers: usize) -> &'static Self {
        let mut random = Rng::with_seed(0);
        let timer = |_| OneTimer {
            deadline: first + random.u64(0..last - first),
            fired: AtomicU64::new(0),
        };
        Box::leak(Box::new(Self {
            timers: (0..timers).map(timer).collect(),
            started: AtomicUsize::new(0),
        }))
    }
}

impl OneTimer {
    fn fired(&self) -> Option<u64> {
        Some(self.fired.load(Relaxed)).filter(|&fired| fired > 0)
    }
}

/// Returns when every service has been polled (except the two that may be doing so).
async fn start_services<S: Sleeps>(
    sleeps: S,
    half: &'static [OneTimer],
    all: &'static All,
    crew: Arc<Crew>,
) {
    crew.take_a_worker();
    for (index, timer) in half.iter().enumerate() {
        let sleep = sleeps.sleep_until(instant(timer.deadline));
        tokio::spawn(service(sleep, timer, &all.started));
        if index % BATCH == BATCH - 1 {
            yield_now().await;
        }
    }
    while all.started.load(SeqCst) < all.timers.len() {
        yield_now().await;
    }
}

/// One task with its timer.
async fn service(
    sleep: impl Future<Output = ()>,
    timer: &'static OneTimer,
    started: &'static AtomicUsize,
) {
    started.fetch_add(1, SeqCst);
    sleep.await;
    timer.fired.store(now(), Relaxed);
}

fn evaluate(all: &All, cost: &Cost) -> Sample {
    let mut fired = Fired::default();
    for timer in &all.timers {
        fired.add(timer.deadline, timer.fired());
    }
    let count = all.timers.len() as f64;
    let figures = [cost.nanos / count, cost.switches / count, cost.looks];
    fired.sample(&PERCENTILES, figures, false)
}
