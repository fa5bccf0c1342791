//! An opening with millions of pending timers, and a hundred thousand that came due while nothing ran.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use fastrand::Rng;
use rustix::fs::{Advice, fadvise};
use waterwheel_durable::{Durable, NewTimer};

use crate::place::{Failure, HANDLER, Place, Played, payload, shut_down};
use crate::process;
use crate::sample::Sample;
use crate::seen::Delivered;

/// How long ago the oldest of them was due.
const DOWN: Duration = Duration::from_secs(600);

/// Prepares the opening that is measured: nothing has handled the timers, and no part of the file is in memory.
pub(crate) async fn prepare(place: Place) -> Played {
    let overdue = place.pick(100_000, 10_000);
    let timers = place.open(Durable::builder()).await?;
    let mut random = Rng::with_seed(5);
    let now = SystemTime::now();
    let due = |_| now - Duration::from_millis(random.u64(0..DOWN.as_millis() as u64));
    let batch: Vec<_> = (0..overdue).map(due).collect();
    let batch = batch
        .into_iter()
        .map(|due| NewTimer::at(HANDLER, due).bytes(payload()));
    timers.insert_many(batch).await?;
    shut_down(&timers).await?;
    drop_from_cache(&place.file())?;
    let mut sample = Sample::default();
    sample.set("overdue", overdue as f64);
    Ok(sample)
}

/// Makes the operating system drop the pages of the file from its cache.
fn drop_from_cache(path: &Path) -> Result<(), Failure> {
    let file = File::open(path)?;
    file.sync_all()?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(())
}

pub(crate) async fn play(place: Place) -> Played {
    let overdue = place.pick(100_000, 10_000);
    let mut sample = Sample::default();
    sample.set("syncs a second", place.syncs()?);
    let delivered = Arc::new(Delivered::default());
    let read = process::read();
    let start = Instant::now();
    let timers = place.open(Durable::builder()).await?;
    sample.set("opened ms", millis_since(start));
    timers.handle(HANDLER, delivered.handler(&Arc::default()));
    delivered.wait(1).await;
    sample.set("first ms", millis_since(start));
    delivered.wait(overdue).await;
    sample.set("all ms", millis_since(start));
    sample.set("megabytes read", (process::read() - read) / 1e6);
    shut_down(&timers).await?;
    delivered.note(overdue, &mut sample);
    sample.set("peak memory", process::peak_memory());
    Ok(sample)
}

fn millis_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}
