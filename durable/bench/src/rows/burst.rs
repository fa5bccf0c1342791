//! Many timers that are due at one time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;
use waterwheel_durable::{Drain, NewTimer};

use crate::place::{Place, Played, Span, payload};
use crate::policies::Policies;
use crate::sample::Sample;

pub(crate) async fn play(place: Place, policies: Policies) -> Played {
    let count = place.pick(200_000, 20_000);
    let timers = place.open(policies.builder()).await?;
    policies.set_up(&timers).await?;
    let handler = policies.handler();
    let delivered = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), Notify::new()));
    let due = SystemTime::now() + place.pick(Duration::from_secs(6), Duration::from_secs(3));
    let batch = (0..count).map(|_| NewTimer::at(handler, due).bytes(payload()));
    timers.insert_many(batch).await?;
    let seen = Arc::clone(&delivered);
    timers.handle(handler, move |delivery| {
        let (all, early, last) = &*seen;
        early.fetch_add(
            usize::from(SystemTime::now() < delivery.due()),
            Ordering::Relaxed,
        );
        if all.fetch_add(1, Ordering::Relaxed) + 1 == count {
            last.notify_one();
        }
        async { Ok(()) }
    });
    let mut sample = Sample::default();
    let before = place.syncs()?;
    let left = due.duration_since(SystemTime::now());
    let left = left.map_err(|_| "the timers were due before all of them were inserted")?;
    tokio::time::sleep(left.saturating_sub(Duration::from_millis(1))).await;
    let start = Instant::now();
    let span = Span::start(&timers);
    let (all, early, last) = &*delivered;
    last.notified().await;
    sample.set("delivered ms", start.elapsed().as_secs_f64() * 1e3);
    // Settled timers are not in memory.
    while timers.metrics().in_memory > 0 {
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    span.end(&timers, count, &mut sample);
    sample.set("syncs a second", f64::midpoint(before, place.syncs()?));
    timers
        .shutdown(Drain::within(Duration::from_secs(10)))
        .await?;
    sample.set("early", early.load(Ordering::Relaxed) as f64);
    sample.set("twice", (all.load(Ordering::Relaxed) - count) as f64);
    Ok(sample)
}
