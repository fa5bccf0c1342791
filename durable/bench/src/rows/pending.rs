//! The file with millions of pending timers, which the rows after it use.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use waterwheel_durable::{Drain, Durable, Handle, NewTimer};

use crate::process;
use crate::random::Random;
use crate::sample::Sample;
use crate::stage::{Failure, HANDLER, Played, Stage, payload, size};

const DAY: u64 = 86_400;
/// Over so many days the pending timers are due.
pub(crate) const DAYS: u64 = 30;
/// So many handles are kept, for the rows that cancel.
const HANDLES: usize = 400_000;
const BATCH: usize = 16_384;

/// Inserts them in batches: this is how the file comes about, and no row.
pub(crate) async fn play(stage: Stage) -> Played {
    let timers = stage.open(Durable::builder()).await?;
    let first = first_midnight();
    let mut random = Random(3);
    let mut left = stage.pending;
    let keep = HANDLES.min(stage.pending / 2);
    let mut handles = Vec::with_capacity(keep);
    while left > 0 {
        let count = left.min(BATCH);
        left -= count;
        let due = |_| first + Duration::from_millis(random.below(DAYS * DAY * 1_000));
        let batch = (0..count).map(due);
        let batch = batch.map(|due| NewTimer::at(HANDLER, due).bytes(payload()));
        for timer in timers.insert_many(batch).await? {
            let handle = timer.handle();
            // Each with the same chance, at all ages.
            if handles.len() < keep {
                handles.push(handle.clone());
            } else {
                let inserted = (stage.pending - left) as u64;
                let place = usize::try_from(random.below(inserted)).unwrap_or(usize::MAX);
                if let Some(place) = handles.get_mut(place) {
                    *place = handle.clone();
                }
            }
        }
    }
    timers
        .shutdown(Drain::within(Duration::from_secs(60)))
        .await?;
    random.shuffle(&mut handles);
    let lines: Vec<String> = handles.iter().map(Handle::to_string).collect();
    fs::write(stage.folder.join("handles"), lines.join("\n"))?;
    let since = first.duration_since(UNIX_EPOCH)?;
    fs::write(stage.folder.join("midnight"), since.as_secs().to_string())?;
    let mut sample = Sample::default();
    sample.set(
        "bytes on disk each",
        size(&stage.file()) / stage.pending as f64,
    );
    sample.set("peak memory", process::peak_memory());
    Ok(sample)
}

/// The start of the first day on which some of them are due: not so near that a bucket cascades while other rows run.
fn first_midnight() -> SystemTime {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let days = now.map_or(0, |since| since.as_secs() / DAY);
    UNIX_EPOCH + Duration::from_secs((days + 3) * DAY)
}

/// The first midnight that the file was built with.
pub(crate) fn midnight(stage: &Stage) -> Result<SystemTime, Failure> {
    let text = fs::read_to_string(stage.folder.join("midnight"))?;
    Ok(UNIX_EPOCH + Duration::from_secs(text.parse()?))
}

/// Takes some of the handles that were kept.
pub(crate) fn take_handles(stage: &Stage, count: usize) -> Result<Vec<Handle>, Failure> {
    let path = stage.folder.join("handles");
    let text = fs::read_to_string(&path)?;
    let mut lines = text.lines();
    let taken: Result<Vec<Handle>, _> = lines.by_ref().take(count).map(str::parse).collect();
    let rest: Vec<&str> = lines.collect();
    fs::write(&path, rest.join("\n"))?;
    Ok(taken.map_err(|error| error.to_string())?)
}
