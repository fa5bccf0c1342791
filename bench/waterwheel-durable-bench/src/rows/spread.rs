//! Inserts that are due evenly over a month or a year, and their life: cascades, deliveries, settles.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fastrand::Rng;
use waterwheel_durable::{Durable, Shift};

use super::pending::DAY;
use crate::callers::{call, measured};
use crate::place::{Failure, HANDLER, Place, Played, payload, shut_down};
use crate::seen::Delivered;

pub(crate) const CALLERS: usize = 1_024;
/// Beyond the finest buckets, so that each timer starts in a far one.
const SOONEST: Duration = Duration::from_secs(2 * 60);
/// The step of the simulated time: less than the shortest bucket that cascades into minutes, so that each level takes part.
const STEP: Duration = Duration::from_secs(45 * 60);

/// The due times of `count` timers, evenly over this many days from now.
pub(crate) fn dues(days: u32, count: usize) -> Vec<SystemTime> {
    let from = SystemTime::now() + SOONEST;
    let span = (DAY * days).saturating_sub(SOONEST);
    let mut random = Rng::with_seed(2);
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let due = |_| from + Duration::from_millis(random.u64(0..millis));
    (0..count).map(due).collect()
}

/// Inserts the timers, and follows them to their end if `lives`.
pub(crate) async fn play(place: Place, days: u32, lives: bool) -> Played {
    // A quick run simulates fewer days.
    let days = if lives { place.pick(days, 2) } else { days };
    let dues = Arc::new(dues(days, place.pick(300_000, 10_000)));
    let shift = Arc::new(Shift::default());
    let timers = place
        .open(Durable::builder().shifted_clocks(Arc::clone(&shift)))
        .await?;
    let delivered = Arc::new(Delivered::default());
    timers.handle(HANDLER, delivered.handler(&shift));
    place.checkpoint()?;
    let calls = insert(&timers, Arc::clone(&dues));
    let mut sample = measured(&place, &timers, calls).await?;
    if lives {
        let start = place.written()?;
        let mut dues = dues.to_vec();
        dues.sort_unstable();
        delivered.live(&shift, STEP, &dues).await;
        shut_down(&timers).await?;
        place.checkpoint()?;
        let rest = (place.written()? - start) / dues.len() as f64;
        let inserted = sample.value("bytes each").unwrap_or(f64::NAN);
        sample.set("bytes of a life", inserted + rest);
        delivered.note(dues.len(), &mut sample);
    } else {
        shut_down(&timers).await?;
    }
    Ok(sample)
}

/// Inserts timers, with each caller awaiting its own insert before the next.
pub(crate) async fn insert(
    timers: &Durable,
    dues: Arc<Vec<SystemTime>>,
) -> Result<crate::callers::Calls, Failure> {
    let timers = timers.clone();
    call(CALLERS, Duration::from_secs(120), move |caller, number| {
        let due = *dues.get(number * CALLERS + caller)?;
        let timers = timers.clone();
        Some(async move {
            timers.at(HANDLER, due).bytes(payload()).insert().await?;
            Ok(())
        })
    })
    .await
}
