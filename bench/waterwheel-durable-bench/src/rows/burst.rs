//! Many timers that are due at one time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;
use waterwheel_durable::{Drain, NewTimer};

use crate::place::{PAYLOAD, Place, Played, Span, payload_of};
use crate::policies::Policies;
use crate::sample::Sample;

/// So many bytes are inserted in a batch, about.
const BATCH_BYTES: usize = 32 << 20;

/// What comes due.
pub(crate) struct Burst {
    pub(crate) timers: usize,
    /// They are spread over so many, by turns.
    pub(crate) handlers: usize,
    /// The bytes of each.
    pub(crate) payload: usize,
    pub(crate) policies: Policies,
    /// They came due while nothing ran, and the time is from the opening.
    pub(crate) is_overdue: bool,
}

impl Burst {
    pub(crate) const PLAIN: Burst = Burst {
        timers: 200_000,
        handlers: 1,
        payload: PAYLOAD,
        policies: Policies::Off,
        is_overdue: false,
    };

    pub(crate) const OVER_1000: Burst = Burst {
        handlers: 1_000,
        ..Burst::PLAIN
    };
}

pub(crate) async fn play(place: Place, burst: Burst) -> Played {
    let count = place.pick(burst.timers, burst.timers / 10);
    let mut timers = place.open(burst.policies.builder()).await?;
    burst.policies.set_up(&timers).await?;
    let handler = burst.policies.handler();
    let names: Vec<String> = match burst.handlers {
        1 => vec![handler.to_owned()],
        many => (0..many).map(|it| format!("{handler}-{it}")).collect(),
    };
    let delivered = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), Notify::new()));
    let wait = match burst.is_overdue {
        true => Duration::ZERO,
        false => place.pick(Duration::from_secs(6), Duration::from_secs(3)),
    };
    let due = SystemTime::now() + wait;
    let portion = BATCH_BYTES / burst.payload;
    for from in (0..count).step_by(portion) {
        let batch = (from..count.min(from + portion)).map(|it| {
            let name = &names[it % names.len()];
            NewTimer::at(name, due).bytes(payload_of(burst.payload))
        });
        timers.insert_many(batch).await?;
    }
    let mut sample = Sample::default();
    let before = place.syncs()?;
    let mut start = Instant::now();
    if burst.is_overdue {
        let drain = Drain::within(Duration::from_secs(10));
        timers.shutdown(drain).await?;
        start = Instant::now();
        timers = place.open(burst.policies.builder()).await?;
    }
    let mut span = Span::start(&timers);
    for name in &names {
        let seen = Arc::clone(&delivered);
        timers.handle(name, move |delivery| {
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
    }
    if !burst.is_overdue {
        let left = due.duration_since(SystemTime::now());
        let left = left.map_err(|_| "the timers were due before all of them were inserted")?;
        tokio::time::sleep(left.saturating_sub(Duration::from_millis(1))).await;
        start = Instant::now();
        span = Span::start(&timers);
    }
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
