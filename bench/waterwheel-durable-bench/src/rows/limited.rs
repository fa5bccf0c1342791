//! A namespace A with a million overdue timers, next to a namespace B that must not notice them.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use fastrand::Rng;
use waterwheel_durable::{Durable, Namespace, NewTimer, Policy, Rate, Shift};

use crate::control::Control;
use crate::place::{Failure, HANDLER, Place, Played, insert_all, payload, shut_down};
use crate::process;
use crate::sample::Sample;
use crate::seen::{Seen, most_in};

/// The rate of A per second, if it is limited.
const RATE: u32 = 100;
const BURST: u32 = 10;
/// With few places, the number of deliveries of A and B that may run at a time: as many as A's handler may run alone.
const PLACES: usize = 64;
/// The duration of A's handler if A is not limited, so that the places are the limit and A's timers last: 64 places begin 32 000 a second at most.
const CALL: Duration = Duration::from_millis(2);
const BATCH: usize = 16_384;

/// The overdue timers of A, and the limit that holds them back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backlog {
    None,
    /// A million, and only a few of them may begin.
    Limited,
    /// A million, under the default policy of a namespace.
    Unlimited,
    /// A million under the default policy, while A and B share few places.
    FewPlaces,
}

/// Lets B's timers come due while A's are overdue.
pub(crate) async fn play(place: Place, backlog: Backlog) -> Played {
    let mut sample = Sample::default();
    let before = place.syncs()?;
    let time = place.pick(Duration::from_secs(25), Duration::from_secs(2));
    let window = place.pick(Duration::from_secs(10), Duration::from_secs(1));
    let builder = match backlog {
        Backlog::FewPlaces => Durable::builder().concurrency(PLACES),
        _ => Durable::builder(),
    };
    let timers = place.open(builder).await?;
    let policy = match backlog {
        Backlog::Limited => Policy::default().rate(Rate::per_second(RATE).burst(BURST)),
        _ => Policy::default(),
    };
    let busy = timers.create_namespace("a", policy).await?;
    let other = timers.create_namespace("b", Policy::default()).await?;
    let overdue = match backlog {
        Backlog::None => 0,
        _ => place.pick(1_000_000, 150_000),
    };
    insert(&timers, &busy, overdue, |_| SystemTime::now()).await?;
    let begin = SystemTime::now() + Duration::from_secs(1);
    let count = place.pick(1_000, 400);
    let mut random = Rng::with_seed(8);
    let millis = u64::try_from(time.as_millis())?;
    insert(&timers, &other, count, |_| {
        begin + Duration::from_millis(random.u64(0..millis))
    })
    .await?;
    let late = Arc::new(Seen::default());
    let real = Arc::new(Shift::default());
    late.see(&other, &real, Duration::ZERO);
    let left = begin.duration_since(SystemTime::now());
    tokio::time::sleep(left.map_err(|_| "the set-up took too long")?).await;

    let control = Control::start();
    let begun = Arc::new(Seen::with_room_for(overdue));
    // From here on, loading part of the million competes with B's deliveries.
    let start = Instant::now();
    let takes = match backlog {
        Backlog::None | Backlog::Limited => Duration::ZERO,
        Backlog::Unlimited | Backlog::FewPlaces => CALL,
    };
    begun.see(&busy, &real, takes);
    tokio::time::sleep(time).await;
    let slept = control.end().await?;
    while late.len() < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    sample.set("peak memory", process::peak_memory());
    shut_down(&timers).await?;
    sample.set("syncs a second", f64::midpoint(before, place.syncs()?));
    let begun: Vec<_> = begun.take().into_iter().map(|(at, _)| at).collect();
    let late: Vec<_> = late.take().into_iter().map(|(_, late)| late).collect();
    if backlog != Backlog::None {
        if begun.len() >= overdue {
            return Err("A had nothing left while B was measured".into());
        }
        let meanwhile = begun.iter().filter(|at| **at - start < time).count();
        let name = match backlog {
            Backlog::Limited => "limited a second",
            _ => "begun a second",
        };
        sample.set(name, meanwhile as f64 / time.as_secs_f64());
    }
    if backlog == Backlog::Limited {
        let most = most_in(window, begun) as f64;
        let expected = f64::from(RATE) * window.as_secs_f64();
        sample.set("beyond the rate", (most - expected).max(0.0));
    }
    slept.note(late, count, &mut sample);
    Ok(sample)
}

/// Inserts `count` timers of a namespace, each due as `due` returns for its number.
pub(super) async fn insert(
    timers: &Durable,
    namespace: &Namespace,
    count: usize,
    mut due: impl FnMut(usize) -> SystemTime,
) -> Result<(), Failure> {
    let handler = namespace.full_name(HANDLER);
    let new = |number| NewTimer::at(&handler, due(number)).bytes(payload());
    insert_all(timers, BATCH, (0..count).map(new)).await
}
