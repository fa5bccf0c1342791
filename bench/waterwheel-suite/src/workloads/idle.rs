//! `idle`: no work for some seconds, with a million timers pending that are due in an hour at the earliest, and with
//! none.
//!
//! The workload counts what runs although nothing is due: the turns of our driver (tokio's has no such count), and the
//! wake-ups of each thread. A wake-up is a voluntary context switch, since a thread that wakes must have gone to sleep.
//! The wake-up thread of waterwheel is counted separately; the other contestants have no figure there. Before the count,
//! one short sleep has fired, so that every timer is running, and half a second has passed.
//!
//! One round: these are counts over a long time, not times. pingora-timeout leaves sleeps of more than a quarter of an
//! hour to tokio, and its thread wakes every 10 ms in any case.

use std::thread;
use std::time::Duration;

use waterwheel::Timer;
use waterwheel_suite::{Metric, Sample, Target, Want};

use crate::contestant::{
    AsyncIo, Current, FuturesTimer, Own, Sleeps, Start, Tokio, Watched, pingora,
};
use crate::cpu;
use crate::crowd::Crowd;
use crate::entrant::Entrant;
use crate::stage::Stage;
use crate::targets::of_both;
use crate::workload::Workload;

pub(crate) const NAME: &str = "idle";
pub(crate) const ROUNDS: usize = 1;

const TURNS: &str = "driver turns";
const THREAD_WAKES: &str = "wake-ups of the wake-up thread";
const METRICS: &[Metric] = &[
    Metric::lower(TURNS, "count"),
    Metric::lower(THREAD_WAKES, "count"),
    Metric::lower("wake-ups of other threads", "count"),
    Metric::lower("CPU", "us"),
];
const SIZES: &[usize] = &[0, 1_000_000];
const AN_HOUR: Duration = Duration::from_secs(3600);
/// The pause until everything that arming started has ended.
const CALM: Duration = Duration::from_millis(500);

fn title(timers: usize) -> String {
    format!("{NAME}, {timers} timers")
}

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let (sizes, seconds) = if quick {
        (&[10_000][..], 1)
    } else {
        (SIZES, 10)
    };
    let workload = |&timers| {
        let time = Duration::from_secs(seconds);
        Workload {
            title: title(timers),
            work: format!("counted for {seconds} s, once"),
            metrics: METRICS,
            entrants: vec![
                entrant(|| Tokio, |_| None, timers, time),
                entrant(
                    Own::start,
                    |own: &Own<Watched>| Some(own.timer.clone()),
                    timers,
                    time,
                ),
                entrant(|| Current, |_| Some(Timer::current()), timers, time),
                entrant(pingora, |_| None, timers, time),
                entrant(|| AsyncIo, |_| None, timers, time),
                entrant(|| FuturesTimer, |_| None, timers, time),
            ],
            absent: Vec::new(),
        }
    };
    sizes.iter().map(workload).collect()
}

pub(crate) fn targets() -> Vec<Target> {
    let mut targets = Vec::new();
    for &timers in SIZES {
        for metric in [TURNS, THREAD_WAKES] {
            targets.extend(of_both(&title(timers), metric, Want::Zero));
        }
    }
    targets
}

fn entrant<S: Sleeps>(
    start: impl Start<S>,
    timer: fn(&S) -> Option<Timer>,
    timers: usize,
    time: Duration,
) -> Entrant {
    Entrant::new(S::NAME, move || {
        let stage = Stage::new();
        let (sleeps, timer) = stage.run(async move {
            let sleeps = start();
            sleeps.sleep(Duration::from_millis(1)).await;
            let timer = timer(&sleeps);
            (sleeps, timer)
        });
        let mut crowd = Crowd::room_for(timers);
        crowd.arm(&stage, &sleeps, &(AN_HOUR..AN_HOUR * 2));
        thread::sleep(CALM);

        let before = counts(timer.as_ref());
        thread::sleep(time);
        let after = counts(timer.as_ref());
        let counts = before.iter().zip(after);
        Sample::of(counts.map(|(before, after)| after - before).collect())
    })
}

/// The counts, in the order of the metrics; NaN where the contestant has no such count. Read from outside, which wakes no thread.
fn counts(timer: Option<&Timer>) -> [f64; 4] {
    [
        timer.map(|timer| timer.metrics().driver_turns()),
        cpu::wake_ups_of_wakeup_thread(),
        cpu::wake_ups_of_others(),
        cpu::nanos().map(|nanos| nanos / 1000),
    ]
    .map(|count| count.map_or(f64::NAN, |count| count as f64))
}
