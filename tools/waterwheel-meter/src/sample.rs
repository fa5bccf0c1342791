//! Fixed data for tests.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::runtime::Builder;
use waterwheel::{ManualClock, Timer};

use crate::history::History;
use crate::job::{Job, JobList};
use crate::reading::{Late, Reading, Totals};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// When the readings are taken: a day, 12 minutes and 30.417 s after the clock's start.
const NOW: u64 = 87_150_417;

/// A reading of a service with a million timers. The dials have some thousands.
pub(crate) fn reading() -> Reading {
    reading_after(NOW)
}

/// A reading this many milliseconds after the clock's start.
pub(crate) fn reading_after(millis: u64) -> Reading {
    let runtime = Builder::new_current_thread().build().unwrap();
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone());
    let timer = timer.start_on(runtime.handle()).unwrap();
    let start = timer.now();
    clock.advance(Duration::from_millis(millis));
    let mut sleeps = Vec::new();
    // Puts this many timers into the slot that is `ahead` units of a dial ahead.
    let mut arm = |unit: u64, ahead: u64, timers: u64| {
        let deadline = Duration::from_millis((millis / unit + ahead) * unit);
        for _ in 0..timers {
            let mut sleep = timer.sleep_until(start + deadline);
            let mut cx = Context::from_waker(Waker::noop());
            assert!(Pin::new(&mut sleep).poll(&mut cx).is_pending());
            sleeps.push(sleep);
        }
    };
    for ahead in 1..=1_000 {
        arm(1, ahead, 1 + (1_000 - ahead) / 100);
    }
    for ahead in (2..=60).filter(|ahead| ahead % 7 != 3) {
        arm(1_000, ahead, 1 << (ahead % 8));
    }
    for ahead in (5..=60).step_by(5) {
        arm(60_000, ahead, ahead);
    }
    arm(3_600_000, 2, 1);
    arm(3_600_000, 23, 1);
    arm(86_400_000, 100, 17);
    let reading = Reading::of(&timer, seconds(751));
    Reading {
        name: Some("requests".to_owned()),
        shards: 2,
        pending: 1_048_221,
        time_left: Some(Duration::from_micros(4_200)),
        totals: totals(0),
        ..reading
    }
}

/// The totals after this many seconds.
fn totals(after: u64) -> Totals {
    let micros = |bucket: u64| Duration::from_micros(1 << bucket);
    let count = 13_000 * after + 90 * (after % 5) * after;
    Totals {
        armed: 130_000 * after,
        fired: count,
        cancelled: 117_000 * after + 11 * after * after,
        cascaded: 1_500 * (after / 3),
        turns: 940 * after,
        late: Late {
            count,
            below: (0..31)
                .map(|bucket| (micros(bucket), count * u64::min(bucket * bucket, 100) / 100))
                .collect(),
        },
    }
}

pub(crate) fn history() -> History {
    let (mut history, reading) = (History::default(), reading());
    for after in 0..20 {
        let reading = Reading {
            up: seconds(after),
            totals: totals(after),
            ..reading.clone()
        };
        history.add(&reading);
    }
    history
}

pub(crate) fn jobs() -> JobList {
    let job = |name: &str, state: &str, next, period, runs, error: Option<&str>| Job {
        name: name.to_owned(),
        state: state.to_owned(),
        next_run: next,
        period,
        runs,
        last_error: error.map(str::to_owned),
    };
    let (next, minutes) = (Some(seconds(8)), Some(seconds(300)));
    JobList {
        total: 10_004,
        shown: vec![
            job("export", "backoff", next, minutes, 12, Some("timeout")),
            job("heartbeat", "running", None, Some(seconds(30)), 25, None),
            job("report", "waiting", Some(seconds(200_000)), None, 0, None),
            job("order 4711", "paused", None, None, 0, None),
        ],
    }
}
