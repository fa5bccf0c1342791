//! Inserts whose syncs are counted from outside.

use std::time::Duration;

use waterwheel_durable::Durable;

use crate::callers::call;
use crate::place::{HANDLER, Place, Played, payload, shut_down};
use crate::sample::Sample;

const CALLERS: usize = 64;

/// Runs in a process in which nothing else syncs.
pub(crate) async fn play(place: Place) -> Played {
    let timers = place.open(Durable::builder()).await?;
    let inserting = timers.clone();
    let time = place.pick(Duration::from_secs(2), Duration::from_millis(500));
    let calls = call(CALLERS, time, move |_, _| {
        let timers = inserting.clone();
        Some(async move {
            let timer = timers.after(HANDLER, Duration::from_secs(1_800));
            timer.bytes(payload()).insert().await?;
            Ok(())
        })
    });
    let inserted = calls.await?.len();
    let mut sample = Sample::default();
    sample.set("operations", inserted as f64);
    sample.set("commits", timers.metrics().commits as f64);
    shut_down(&timers).await?;
    Ok(sample)
}
