//! A namespace that may begin few of its million timers, beside one that is to notice nothing of it.

use std::future::ready;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use waterwheel_durable::{Drain, Durable, Namespace, NewTimer, Policy, Rate};

use crate::control::Control;
use crate::lateness;
use crate::place::{Failure, HANDLER, Place, Played, payload};
use crate::process;
use crate::random::Random;
use crate::sample::Sample;
use crate::seen::{Seen, micros_late, most_in};

/// What A may begin in a second.
const RATE: u32 = 100;
const BURST: u32 = 10;
const BATCH: usize = 16_384;

/// B's timers come due while A has a million that are overdue, or while A has none.
pub(crate) async fn play(place: Place, has_backlog: bool) -> Played {
    let time = place.pick(Duration::from_secs(25), Duration::from_secs(4));
    let window = place.pick(Duration::from_secs(10), Duration::from_secs(1));
    let timers = place.open(Durable::builder()).await?;
    let policy = Policy::default().rate(Rate::per_second(RATE).burst(BURST));
    let limited = timers.create_namespace("a", policy).await?;
    let other = timers.create_namespace("b", Policy::default()).await?;
    if has_backlog {
        let count = place.pick(1_000_000, 50_000);
        insert(&timers, &limited, count, |_| SystemTime::now()).await?;
    }
    let begin = SystemTime::now() + Duration::from_secs(1);
    let count = place.pick(1_000, 400);
    let mut random = Random(8);
    let millis = u64::try_from(time.as_millis())?;
    insert(&timers, &other, count, |_| {
        begin + Duration::from_millis(random.below(millis))
    })
    .await?;
    let late = Arc::new(Seen::default());
    see(&other, &late);
    let left = begin.duration_since(SystemTime::now());
    tokio::time::sleep(left.map_err(|_| "the set-up took too long")?).await;

    let mut sample = Sample::default();
    let control = Control::start();
    let begun = Arc::new(Seen::default());
    // From here on: what is loaded of the million is loaded beside B's deliveries.
    see(&limited, &begun);
    tokio::time::sleep(time).await;
    let slept = control.end().await?;
    while late.len() < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    sample.set("peak memory", process::peak_memory());
    timers
        .shutdown(Drain::within(Duration::from_secs(30)))
        .await?;
    let begun: Vec<_> = begun.take().into_iter().map(|(at, _)| at).collect();
    let late: Vec<_> = late.take().into_iter().map(|(_, late)| late).collect();
    if has_backlog {
        let seconds = time.as_secs_f64();
        sample.set("limited a second", begun.len() as f64 / seconds);
        let most = most_in(window, begun) as f64;
        let expected = f64::from(RATE) * window.as_secs_f64();
        sample.set("beyond the rate", (most - expected).max(0.0));
    }
    sample.set("early", late.iter().filter(|it| **it < 0).count() as f64);
    sample.set("twice", late.len().saturating_sub(count) as f64);
    lateness::note("late", late, &mut sample);
    lateness::note("thread", slept.thread, &mut sample);
    lateness::note("tokio", slept.task, &mut sample);
    Ok(sample)
}

/// Inserts so many timers of a namespace, each due as `due` says of its number.
pub(super) async fn insert(
    timers: &Durable,
    namespace: &Namespace,
    count: usize,
    mut due: impl FnMut(usize) -> SystemTime,
) -> Result<(), Failure> {
    let handler = namespace.full_name(HANDLER);
    let mut inserted = 0;
    while inserted < count {
        let batch = inserted..count.min(inserted + BATCH);
        inserted = batch.end;
        let batch = batch.map(|number| NewTimer::at(&handler, due(number)).bytes(payload()));
        timers.insert_many(batch.collect::<Vec<_>>()).await?;
    }
    Ok(())
}

/// A handler that does nothing but to note each delivery.
fn see(namespace: &Namespace, seen: &Arc<Seen>) {
    let seen = Arc::clone(seen);
    namespace.handle(HANDLER, move |delivery| {
        seen.one(micros_late(delivery.due(), Duration::ZERO));
        ready(Ok(()))
    });
}
