//! Many timers that are due at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use waterwheel_durable::{NewTimer, Shift};

use crate::place::{Place, Played, Span, insert_all, payload_of, shut_down};
use crate::policies::Policies;
use crate::sample::Sample;
use crate::seen::Delivered;

/// The approximate number of bytes that a batch inserts.
const BATCH_BYTES: usize = 32 << 20;

/// Lets `timers` timers come due, with payloads of this length, round-robin over `handlers` handlers. If `is_overdue`, they come due while nothing runs, and the
/// time is measured from the opening.
pub(crate) async fn play(
    place: Place,
    timers: usize,
    handlers: usize,
    payload: usize,
    policies: Policies,
    is_overdue: bool,
) -> Played {
    let count = place.pick(timers, timers / 10);
    let mut timers = place.open(policies.builder()).await?;
    policies.set_up(&timers).await?;
    let handler = policies.handler();
    let names: Vec<String> = match handlers {
        1 => vec![handler.to_owned()],
        many => (0..many).map(|it| format!("{handler}-{it}")).collect(),
    };
    let delivered = Arc::new(Delivered::default());
    let wait = match is_overdue {
        true => Duration::ZERO,
        false => place.pick(Duration::from_secs(6), Duration::from_secs(3)),
    };
    let due = SystemTime::now() + wait;
    let new = (0..count).map(|it| {
        let name = &names[it % names.len()];
        NewTimer::at(name, due).bytes(payload_of(payload))
    });
    insert_all(&timers, BATCH_BYTES / payload, new).await?;
    let mut sample = Sample::default();
    let before = place.syncs()?;
    let mut start = Instant::now();
    if is_overdue {
        shut_down(&timers).await?;
        start = Instant::now();
        timers = place.open(policies.builder()).await?;
    }
    let mut span = Span::start(&place, &timers)?;
    let real = Arc::new(Shift::default());
    for name in &names {
        timers.handle(name, delivered.handler(&real));
    }
    if !is_overdue {
        let left = due.duration_since(SystemTime::now());
        let left = left.map_err(|_| "the timers were due before all of them were inserted")?;
        tokio::time::sleep(left.saturating_sub(Duration::from_millis(1))).await;
        start = Instant::now();
        span.restart()?;
    }
    delivered.wait(count).await;
    sample.set("delivered ms", start.elapsed().as_secs_f64() * 1e3);
    // Settled timers are not in memory.
    while timers.metrics().in_memory > 0 {
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    span.end(&timers, count, &mut sample)?;
    sample.set("syncs a second", f64::midpoint(before, place.syncs()?));
    shut_down(&timers).await?;
    delivered.note(count, &mut sample);
    Ok(sample)
}
