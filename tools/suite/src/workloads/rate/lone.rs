//! `rate, lone`: one task that sleeps 1 to 2 ms over and over, and nothing else in the whole runtime: a backoff, a poll
//! of a device, a pacer.
//!
//! No timer is pending beside the one, so nothing shares the cost of its wake-up, and there are fewer than a thousand a
//! second. The delays are random. With the same delay each time, every sleep would begin just after a tick, and its
//! lateness would be that of this one phase.

use std::ops::Range;
use std::thread;
use std::time::Duration;

use waterwheel_suite::{Metric, Sample, Target, Want};

use crate::armed::{self, instant, nanos, now};
use crate::contestant::{Current, Guarded, Own, Precise, Sleeps, Start, Tokio};
use crate::cpu;
use crate::entrant::Entrant;
use crate::lateness::Lateness;
use crate::patience;
use crate::random::SplitMix64;
use crate::stage::Stage;
use crate::workload::Workload;

const TITLE: &str = "rate, lone";
const P50: &str = "lateness p50";
const METRICS: &[Metric] = &[
    Metric::lower(P50, "us"),
    Metric::lower("lateness p99", "us"),
    Metric::lower("CPU a timer", "ns"),
    Metric::lower("context switches a timer", "count"),
    Metric::lower("fired early", "count"),
];
const PERCENTILES: [f64; 2] = [0.5, 0.99];

const DELAYS: Range<Duration> = Duration::from_millis(1)..Duration::from_millis(2);
/// Before the first sleep and after the last, so that the workers rest while the cost is read.
const CALM: Duration = Duration::from_millis(20);

pub(super) fn workload(quick: bool) -> Workload {
    let millis = if quick { 100 } else { 2000 };
    let window = Duration::from_millis(millis);
    Workload {
        title: TITLE.to_owned(),
        work: format!("one task, sleeps of 1 to 2 ms in turn for {millis} ms"),
        metrics: METRICS,
        entrants: vec![
            entrant(Tokio::start, window),
            entrant(Own::<Precise>::start, window),
            entrant(Own::<Guarded>::start, window),
            entrant(Current::start, window),
        ],
        absent: super::absent(),
    }
}

/// Of the precise timer alone: tokio's clock, which wakes the others, is no finer than a millisecond.
pub(super) fn targets() -> Vec<Target> {
    vec![Target {
        title: TITLE.to_owned(),
        metric: P50,
        of: Own::<Precise>::NAME,
        want: Want::AtMost(200.0),
    }]
}

fn entrant<S: Sleeps>(start: impl Start<S>, window: Duration) -> Entrant {
    Entrant::new(S::NAME, move || sample(start, window))
}

fn sample<S: Sleeps>(start: impl Start<S>, window: Duration) -> Sample {
    let stage = Stage::new();
    let sleeps = stage.run(async move { start() });
    let far = stage.run(armed::far(sleeps.clone()));
    // A timer may start threads with its first short sleep.
    stage.run(sleep_in_turn(sleeps.clone(), CALM));
    thread::sleep(CALM);

    let mut task = None;
    let mut hangs = false;
    let cost = cpu::cost_of(|| {
        let task = task.insert(stage.spawn(sleep_in_turn(sleeps, window)));
        hangs = !patience::wait_for(|| task.is_finished());
        thread::sleep(CALM);
    });
    drop(far);
    let slept = match task {
        Some(task) if !hangs => stage.wait(task),
        _ => Slept::default(),
    };
    let timers = slept.lateness.len() as f64;
    let mut values = Lateness::new(slept.lateness)
        .percentiles(PERCENTILES)
        .to_vec();
    values.extend([
        cost.nanos / timers,
        cost.switches / timers,
        slept.early as f64,
    ]);
    Sample {
        values,
        early: slept.early,
        lost: u64::from(hangs),
        ..Sample::default()
    }
}

/// What the task saw of its sleeps.
#[derive(Default)]
struct Slept {
    lateness: Vec<u64>,
    early: u64,
}

async fn sleep_in_turn<S: Sleeps>(sleeps: S, window: Duration) -> Slept {
    let mut random = SplitMix64(0);
    let mut slept = Slept::default();
    let end = now() + nanos(window);
    while now() < end {
        let deadline = now() + nanos(random.duration(&DELAYS));
        sleeps.sleep_until(instant(deadline)).await;
        let fired = now();
        slept.early += u64::from(fired < deadline);
        slept.lateness.push(fired.saturating_sub(deadline));
    }
    slept
}
