//! One sample: arm, wait, evaluate.
//!
//! Every sleep is armed before the first is due, or the sample is taken again with twice the time to arm. The CPU time
//! is that of the workers and every other thread of the contestant, from just before the first deadline until just
//! after the last wake, including the driver's own wake-ups and one clock read per timer (our waker's). One more
//! timer, an hour away, is pending throughout, so that no helper thread ends with the last sleep and takes its CPU
//! time with it.

use std::future::Future;
use std::ops::Range;
use std::time::Duration;

use fastrand::Rng;
use tokio::task::yield_now;
use waterwheel_suite::Sample;

use crate::armed::{self, Armed, instant, nanos, now, wait_until};
use crate::contestant::{Measure, Sleeps, Start};
use crate::cpu;
use crate::lateness::Fired;
use crate::lead;
use crate::patience;
use crate::stage::{BATCH, Stage};

/// The pause after the last sleep is armed, and the one between the first reading of the CPU time and the first deadline.
const CALM: Duration = Duration::from_millis(50);
/// The percentiles, including the maximum as the last one.
const PERCENTILES: [f64; 4] = [0.5, 0.99, 0.999, 1.0];

/// The number of due timers, and the time over which they are due.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) timers: usize,
    pub(crate) window: Duration,
    /// The estimated time to arm one sleep.
    pub(crate) to_arm: Duration,
}

impl Measure for Load {
    fn sample<S: Sleeps>(self, start: impl Start<S>) -> Sample {
        let guess = CALM * 3 + self.to_arm * self.timers as u32;
        lead::long_enough(guess, |lead| attempt(start, self, lead))
    }
}

/// Takes a sample. `None` if the sleeps were not armed in time.
fn attempt<S: Sleeps>(start: impl Start<S>, load: Load, lead: Duration) -> Option<Sample> {
    let stage = Stage::new();
    let sleeps = stage.run(async move { start() });
    let far = stage.run(armed::far(sleeps.clone()));
    let first = now() + nanos(lead);
    let last = first + nanos(load.window);

    let tasks = [0, 1].map(|seed| {
        let count = (load.timers + seed) / 2;
        stage.spawn(arm(sleeps.clone(), seed as u64, first..last, count))
    });
    let armed: Vec<_> = tasks
        .into_iter()
        .flat_map(|task| stage.wait(task))
        .collect();
    if now() + 2 * nanos(CALM) > first {
        return None;
    }

    wait_until(first - nanos(CALM));
    let cpu = cpu::nanos_of(|| {
        wait_until(last + nanos(CALM));
        patience::wait_for(|| armed.iter().all(|armed| armed.woken().is_some()));
    });
    let sample = stage.run(evaluate(armed, cpu));
    drop(far);
    Some(sample)
}

/// One task's share of the arming.
async fn arm<S: Sleeps>(
    sleeps: S,
    seed: u64,
    due: Range<u64>,
    count: usize,
) -> Vec<Armed<S::Sleep>> {
    let mut random = Rng::with_seed(seed);
    let mut all = Vec::with_capacity(count);
    for index in 0..count {
        let deadline = due.start + random.u64(0..due.end - due.start);
        let sleep = sleeps.sleep_until(instant(deadline));
        all.push(Armed::new(sleep, deadline));
        if index % BATCH == BATCH - 1 {
            yield_now().await;
        }
    }
    all
}

/// Polls every sleep for the last time and sorts the lateness.
async fn evaluate<S: Future<Output = ()>>(all: Vec<Armed<S>>, cpu: f64) -> Sample {
    let (timers, mut fired) = (all.len(), Fired::default());
    fired.late.reserve(timers);
    for (index, mut armed) in all.into_iter().enumerate() {
        // Half a batch: each poll that is ready takes one of the 128 units of tokio's cooperative budget.
        if index % (BATCH / 2) == 0 {
            yield_now().await;
        }
        let woken = armed.woken();
        fired.add(armed.deadline(), woken);
        fired.lost += u64::from(woken.is_some() && !armed.is_over());
    }
    fired.sample(&PERCENTILES, [cpu / timers as f64], true)
}
