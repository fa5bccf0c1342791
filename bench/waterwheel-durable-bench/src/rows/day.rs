//! A day of the pending timers: cascades, deliveries, settles, and the bytes that they write.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use waterwheel_durable::{Durable, Shift};

use super::pending::{Calendar, DAY};
use crate::place::{HANDLER, Place, Played, Span, shut_down};
use crate::process;
use crate::sample::Sample;
use crate::seen::Delivered;

/// The step of the simulated time: the finest far buckets cascade one after the other.
const STEP: Duration = Duration::from_secs(60);
/// The time before midnight at which the row begins: before the day's bucket cascades.
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
    timers.handle(HANDLER, delivered.handler(&shift));
    let mut sample = Sample::default();
    let before = place.syncs()?;
    let span = Span::start(&place, &timers)?;
    delivered.live(&shift, STEP, &dues).await;
    span.end(&timers, dues.len(), &mut sample)?;
    sample.set("syncs a second", f64::midpoint(before, place.syncs()?));
    shut_down(&timers).await?;
    sample.set("early", delivered.early.load(Ordering::Relaxed) as f64);
    sample.set("peak memory", process::peak_memory());
    // The last step may have overshot the end.
    calendar.pass(&place, end + STEP * 2)?;
    Ok(sample)
}
