//! A day of the pending timers: cascades, deliveries, settles, and what they write.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use waterwheel_durable::{Drain, Durable, Shift};

use super::pending::{Calendar, DAY};
use super::spread::Delivered;
use crate::place::{HANDLER, Place, Played, Span};
use crate::process;
use crate::sample::Sample;

/// So much time passes at once: the finest far buckets cascade one after the other.
const STEP: Duration = Duration::from_secs(60);
/// Before the day's bucket cascades.
const BEFORE: Duration = Duration::from_secs(3_600 + 60);

pub(crate) async fn play(place: Place) -> Played {
    let calendar = Calendar::read(&place)?;
    let begin = calendar.midnight() - BEFORE;
    let end = begin + DAY;
    let mut dues: Vec<_> = calendar.due_by(&place, end).collect();
    dues.sort_unstable();
    let shift = Arc::new(Shift::default());
    let ahead = begin.duration_since(SystemTime::now())?;
    shift.set_wall(i64::try_from(ahead.as_micros())?);
    let builder = Durable::builder().shifted_clocks(Arc::clone(&shift));
    let timers = place.open(builder).await?;
    let delivered = Arc::new(Delivered::default());
    let (seen, clock) = (Arc::clone(&delivered), Arc::clone(&shift));
    timers.handle(HANDLER, move |delivery| {
        let ahead = Duration::from_micros(clock.wall().unsigned_abs());
        seen.one(SystemTime::now() + ahead < delivery.due());
        async { Ok(()) }
    });
    let mut sample = Sample::default();
    let before = place.syncs()?;
    let span = Span::start(&timers);
    let mut due = 0;
    while due < dues.len() {
        shift.suspend(u64::try_from(STEP.as_micros())?);
        let now = SystemTime::now() + Duration::from_micros(shift.wall().unsigned_abs());
        due = dues.partition_point(|it| *it <= now);
        delivered.wait(due).await;
    }
    span.end(&timers, dues.len(), &mut sample);
    sample.set("syncs a second", f64::midpoint(before, place.syncs()?));
    timers
        .shutdown(Drain::within(Duration::from_secs(60)))
        .await?;
    sample.set("early", delivered.early.load(Ordering::Relaxed) as f64);
    sample.set("peak memory", process::peak_memory());
    // The last step may have gone beyond the end.
    calendar.pass(&place, end + STEP * 2)?;
    Ok(sample)
}
