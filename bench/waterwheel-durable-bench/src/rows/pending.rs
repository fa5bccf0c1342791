//! Builds the file with millions of pending timers, which later rows use.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use waterwheel_bench_kit::{read_json, write_json};
use waterwheel_durable::{Durable, Handle, NewTimer};

use crate::place::{Failure, HANDLER, Place, Played, payload, shut_down};
use crate::process;
use crate::sample::Sample;

pub(crate) const DAY: Duration = Duration::from_secs(86_400);
/// The number of days over which the pending timers are due.
pub(crate) const DAYS: u32 = 30;
/// The maximum number of days that other rows may let pass.
const PLAYED: u32 = 15;
/// The approximate number of handles that are kept, for the row that cancels.
const HANDLES: u64 = 800_000;
const BATCH: usize = 16_384;

/// Inserts the timers in batches. This builds the file, and is not measured.
pub(crate) async fn play(place: Place) -> Played {
    let timers = place.open(Durable::builder()).await?;
    let first = first_midnight();
    let mut dues = dues(first);
    let mut random = Rng::with_seed(6);
    let mut handles = Vec::new();
    let mut left = place.pending;
    while left > 0 {
        let count = left.min(BATCH);
        left -= count;
        let batch = dues.by_ref().take(count);
        let batch = batch.map(|due| NewTimer::at(HANDLER, due).bytes(payload()));
        for timer in timers.insert_many(batch).await? {
            let handle = timer.handle();
            let stays = handle
                .due
                .time()
                .is_some_and(|due| due > first + DAY * PLAYED);
            if stays && random.u64(0..place.pending as u64) < HANDLES {
                handles.push(handle.clone());
            }
        }
    }
    shut_down(&timers).await?;
    random.shuffle(&mut handles);
    let lines: Vec<String> = handles.iter().map(Handle::to_string).collect();
    fs::write(place.folder.join("handles"), lines.join("\n"))?;
    let (days, passed) = (0, first - DAY);
    let calendar = Calendar {
        first,
        days,
        passed,
    };
    calendar.write(&place)?;
    let mut sample = Sample::default();
    let bytes = place.size()? / place.pending as f64;
    sample.set("bytes on disk each", bytes);
    sample.set("peak memory", process::peak_memory());
    Ok(sample)
}

/// The due times of the pending timers, in the order of their inserts.
fn dues(first: SystemTime) -> impl Iterator<Item = SystemTime> {
    let mut random = Rng::with_seed(3);
    let millis = u64::try_from((DAY * DAYS).as_millis()).unwrap_or(u64::MAX);
    std::iter::repeat_with(move || first + Duration::from_millis(random.u64(0..millis)))
}

/// The start of the first day on which some timers are due: far enough away that no bucket cascades while other rows run.
fn first_midnight() -> SystemTime {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let days = now.map_or(0, |since| since.as_secs() / DAY.as_secs());
    UNIX_EPOCH + Duration::from_secs((days + 3) * DAY.as_secs())
}

/// How far the time of the pending timers has passed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Calendar {
    /// The start of the first day on which some timers are due.
    first: SystemTime,
    /// The number of rows that have let a day pass.
    days: u32,
    /// The time up to which every due timer was delivered.
    passed: SystemTime,
}

impl Calendar {
    pub(crate) fn read(place: &Place) -> Result<Calendar, Failure> {
        Ok(read_json(&place.folder.join("calendar"))?)
    }

    fn write(&self, place: &Place) -> Result<(), Failure> {
        Ok(write_json(&place.folder.join("calendar"), self)?)
    }

    /// The start of the next day.
    pub(crate) fn midnight(&self) -> SystemTime {
        self.first + DAY * self.days
    }

    /// The end of the last day on which pending timers are due.
    pub(crate) fn end(&self) -> SystemTime {
        self.first + DAY * DAYS
    }

    /// The due times of the undelivered timers that are due by `end`.
    pub(crate) fn due_by(
        &self,
        place: &Place,
        end: SystemTime,
    ) -> impl Iterator<Item = SystemTime> {
        let passed = self.passed;
        let dues = dues(self.first).take(place.pending);
        dues.filter(move |due| passed < *due && *due <= end)
    }

    /// Notes that another day was played, and that time has passed up to `passed`.
    pub(crate) fn pass(mut self, place: &Place, passed: SystemTime) -> Result<(), Failure> {
        self.days += 1;
        if self.days > PLAYED {
            return Err(format!(
                "{} days have passed, and handles are kept of what is due after {PLAYED}",
                self.days
            )
            .into());
        }
        self.passed = passed;
        self.write(place)
    }
}

/// Takes some of the kept handles.
pub(crate) fn take_handles(place: &Place, count: usize) -> Result<Vec<Handle>, Failure> {
    let path = place.folder.join("handles");
    let text = fs::read_to_string(&path)?;
    let mut lines = text.lines();
    let taken: Result<Vec<Handle>, _> = lines.by_ref().take(count).map(str::parse).collect();
    let rest: Vec<&str> = lines.collect();
    fs::write(&path, rest.join("\n"))?;
    Ok(taken.map_err(|error| error.to_string())?)
}
