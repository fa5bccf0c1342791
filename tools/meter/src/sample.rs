//! Fixed data for tests.

use std::time::Duration;

use crate::history::History;
use crate::job::{Job, JobList};
use crate::reading::{Dial, Late, Reading, Totals};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Of a service with a million timers.
pub(crate) fn reading() -> Reading {
    let dial = |name: &str, hand, slots: u64, count: fn(u64) -> u64| Dial {
        name: name.to_owned(),
        hand,
        counts: (0..slots).map(count).collect(),
    };
    Reading {
        up: seconds(751),
        name: Some("requests".to_owned()),
        resolution: Duration::from_millis(1),
        shards: 2,
        pending: 1_048_221,
        due: 0,
        beyond: 17,
        time_left: Some(Duration::from_micros(4_200)),
        dials: vec![
            dial("ms", 417, 1_000, |slot| 500 + slot * slot % 997),
            dial("s", 30, 60, |slot| {
                if slot % 7 == 3 { 0 } else { 40 << (slot % 8) }
            }),
            dial("min", 12, 60, |slot| if slot % 5 == 0 { slot } else { 0 }),
            dial("h", 0, 24, |slot| u64::from(slot == 2 || slot == 23)),
            dial("d", 1, 64, |_| 0),
        ],
        totals: totals(0),
    }
}

/// After so many seconds.
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
    let mut history = History::default();
    for after in 0..20 {
        let reading = Reading {
            up: seconds(after),
            totals: totals(after),
            ..reading()
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
