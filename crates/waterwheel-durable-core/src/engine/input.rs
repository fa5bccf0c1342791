use std::sync::Arc;
use std::time::Duration;

use crate::store::{Due, PageLimit};

/// What names a request in the answer to it.
pub type Token = u64;

/// How the engine works.
#[derive(Debug, Clone)]
pub struct Config {
    /// How long before its second begins a timer is loaded, in seconds.
    pub window: i64,
    /// How many rows are loaded or cascaded at a time.
    pub page: usize,
    /// How many timers of a handler are in memory at most. The others wait in the store.
    pub max_in_memory: usize,
    /// How many bytes the timers of all handlers take in memory, about. One handler's may take as many as are left free, and always
    /// 64 KiB (where this is less than 2 MiB, a 32nd of it) and a row.
    pub max_bytes_in_memory: usize,
    /// The delays after the first, second … failure. After the last one, a failure is the end.
    pub retry_delays: Vec<Duration>,
    /// How many deliveries of all namespaces go on at a time. `None`: as many as each of them takes.
    pub concurrency: Option<usize>,
    /// How many steps a commit has at most.
    pub max_in_commit: usize,
    /// How many bytes the inserts of a commit have, about, those of calendars among them. A store that runs out of space has a reserve for what it has not yet copied from its WAL, and the
    /// reserve is not without end.
    pub max_bytes_in_commit: usize,
    /// After so many microseconds without a reply, the store is asked again.
    pub reply_micros: u64,
    /// After so many microseconds, what the store has refused is tried again.
    pub refused_micros: u64,
    /// A name without a handler is reported when its timers have been due, and the engine there, for so long: at a start, handlers come a little later than timers.
    pub grace: Duration,
    /// A larger change between both clocks, in microseconds, and the timers in memory are filed again.
    pub largest_drift_micros: u64,
}

impl Config {
    /// How much of a bucket cascades in a commit: as many rows as are loaded at a time, and about as many bytes.
    pub(super) fn cascade(&self) -> PageLimit {
        PageLimit {
            rows: self.page,
            bytes: (self.max_bytes_in_memory / 32).max(1),
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        let retry_delays = [15, 30, 180, 600, 1_200, 1_800, 3_600, 7_200, 10_800, 21_600];
        Config {
            window: 2,
            page: 4_096,
            max_in_memory: 65_536,
            max_bytes_in_memory: 64 << 20,
            retry_delays: retry_delays.map(Duration::from_secs).to_vec(),
            concurrency: None,
            max_in_commit: 16_384,
            max_bytes_in_commit: 4 << 20,
            reply_micros: 30_000_000,
            refused_micros: 200_000,
            grace: Duration::from_secs(1),
            largest_drift_micros: 1_000,
        }
    }
}

/// A timer to insert.
#[derive(Debug, Clone)]
pub struct NewTimer {
    /// The handler that it is delivered to.
    pub handler: Arc<str>,
    /// When it is due.
    pub due: Due,
    /// Its business key: no other timer of the handler has it at the same time.
    pub key: Option<Arc<[u8]>>,
    /// What the handler is handed.
    pub payload: Arc<[u8]>,
}

/// How a delivery has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The timer is settled.
    Well,
    /// It is retried after the next retry delay.
    Failed(Arc<str>),
    /// It is tried again after this delay, which is a year at most, instead of the next retry delay, and as often as that has delays.
    Later(Arc<str>, Duration),
    /// It is not tried again.
    Dead(Arc<str>),
}
