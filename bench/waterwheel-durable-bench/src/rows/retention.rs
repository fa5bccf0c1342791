//! Millions of timers come and go, their archive expires, and the file returns to its former size.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fastrand::Rng;
use waterwheel_durable::{Cancelled, Durable, NewTimer, Policy, Shift};

use super::keyed::key;
use super::pending::DAY;
use crate::place::{Failure, HANDLER, Place, Played, insert_all, payload, shut_down, size_alone};
use crate::process;
use crate::sample::Sample;
use crate::seen::{Delivered, now, pass};
use crate::store::Longest;

const SHOP: &str = "shop";
const NAME: &str = "shop/reminder";
/// The number of timers that come and go at a time.
const PORTION: usize = 100_000;
/// The number of timers that are inserted at a time.
const BATCH: usize = 4_096;
/// The number of days that delivered timers are kept: until all portions have gone.
const KEPT: u32 = 30;
/// The time that passes between two portions.
const STEP: Duration = Duration::from_secs(3_600);
/// How long the file must not change to count as fully shrunk: pages are released when the WAL is copied.
const STILL: Duration = Duration::from_secs(10);
/// The seed of the keys, equal in each run.
const KEYS: u64 = 11;
/// The number of first keys that are checked: taken while their timers are kept, and free after that.
const LOOKED_AT: usize = 100;

/// Whether the timers that come and go have business keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    None,
    /// Each timer has a random key.
    Random,
}

pub(crate) async fn play(place: Place, keys: Keys) -> Played {
    let portions = place.pick(100, 4);
    let portion = place.pick(PORTION, PORTION / 4);
    let mut sample = Sample::default();
    let before = place.syncs()?;
    let still = place.pick(STILL, STILL / 10);
    // These timers stay, as some do in any service.
    let staying = place.open(Durable::builder()).await?;
    let far = SystemTime::now() + DAY * 400;
    let stay = place.pick(1_000_000, PORTION);
    insert(&staying, HANDLER, stay, far, None).await?;
    shut_down(&staying).await?;
    sample.set("bytes at the start", size_alone(&place.file()));

    let commits = Arc::new(Longest::default());
    let shift = Arc::new(Shift::default());
    let builder = Durable::builder().shifted_clocks(Arc::clone(&shift));
    let timers = place.open_timed(builder, &commits).await?;
    let policy = Policy::default().retention(KEPT);
    let shop = timers.create_namespace(SHOP, policy).await?;
    let delivered = Arc::new(Delivered::default());
    shop.handle(HANDLER, delivered.handler(&shift));
    let caller = Caller::start(&timers);
    let mut random = Rng::with_seed(KEYS);
    for number in 1..=portions {
        let due = now(&shift) + STEP / 2;
        let keys = (keys == Keys::Random).then_some(&mut random);
        insert(&timers, NAME, portion, due, keys).await?;
        pass(&shift, STEP);
        delivered.wait(number * portion).await;
        if number == portions.div_ceil(10) {
            // By then, everything that the timers need is allocated, SQLite's cache included.
            sample.set("memory at the start", process::memory());
        }
    }
    let all = portions * portion;
    // A timer that is settled after the archive's time has passed would not expire.
    while shop.metrics().settled < all as u64 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    sample.set("go: longest call ms", caller.longest.take());
    sample.set("go: longest commit ms", commits.take());
    let kept = size_alone(&place.file()) - sample.value("bytes at the start").unwrap_or(0.0);
    sample.set("bytes kept each", kept / all as f64);
    if keys == Keys::Random && taken(&timers).await? < LOOKED_AT {
        return Err("a key is free while its timer is kept".into());
    }

    let start = Instant::now();
    pass(&shift, DAY * (KEPT + 2));
    while !shop
        .archived(HANDLER, UNIX_EPOCH, None, 1)
        .await?
        .is_empty()
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let expired = start.elapsed().as_secs_f64();
    sample.set("expired in s", expired);
    sample.set("expired a second", all as f64 / expired);
    let (mut since, mut least) = (Instant::now(), f64::INFINITY);
    while since.elapsed() < still {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let size = size_alone(&place.file());
        if size < least {
            (since, least) = (Instant::now(), size);
        }
    }
    sample.set("small in s", (since - start).as_secs_f64());
    sample.set("expire: longest call ms", caller.longest.take());
    sample.set("expire: longest commit ms", commits.take());
    sample.set("memory at the end", process::memory());
    sample.set("calls", caller.end().await? as f64);
    if keys == Keys::Random && taken(&timers).await? > 0 {
        return Err("a key is taken after its timer has expired".into());
    }
    shut_down(&timers).await?;
    sample.set("bytes at the end", size_alone(&place.file()));
    sample.set("syncs a second", f64::midpoint(before, place.syncs()?));
    delivered.note(all, &mut sample);
    sample.set("peak memory", process::peak_memory());
    Ok(sample)
}

/// Counts how many of the first keys are taken. A key that is free stays free.
async fn taken(timers: &Durable) -> Result<usize, Failure> {
    let mut random = Rng::with_seed(KEYS);
    let mut taken = 0;
    for _ in 0..LOOKED_AT {
        let far = SystemTime::now() + DAY * 800;
        let timer = timers.at(NAME, far).key(key(&mut random));
        let timer = timer.insert().await?;
        match timer.is_new() {
            true => {
                timers.cancel(timer.handle()).await?;
            }
            false => taken += 1,
        }
    }
    Ok(taken)
}

/// Inserts `count` timers, due evenly within ten minutes after this time, with keys if there is a generator for them.
async fn insert(
    timers: &Durable,
    handler: &str,
    count: usize,
    due: SystemTime,
    mut keys: Option<&mut Rng>,
) -> Result<(), Failure> {
    let each = |number| due + Duration::from_secs(600) * number as u32 / count as u32;
    let new = (0..count).map(|number| {
        let timer = NewTimer::at(handler, each(number)).bytes(payload());
        match &mut keys {
            Some(random) => timer.key(key(random)),
            None => timer,
        }
    });
    insert_all(timers, BATCH, new).await
}

/// A caller that inserts timers one after the other, and cancels each so that nothing is left of it.
struct Caller {
    longest: Arc<Longest>,
    is_over: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<Result<usize, Failure>>,
}

impl Caller {
    fn start(timers: &Durable) -> Caller {
        let longest = Arc::new(Longest::default());
        let is_over = Arc::new(AtomicBool::new(false));
        let (timers, times, ends) = (timers.clone(), Arc::clone(&longest), Arc::clone(&is_over));
        let task = tokio::spawn(async move {
            let mut calls = 0;
            while !ends.load(Ordering::Relaxed) {
                let far = SystemTime::now() + DAY * 800;
                let call = Instant::now();
                let timer = timers.at(HANDLER, far).bytes(payload()).insert().await?;
                times.note(call.elapsed());
                calls += 1;
                if timers.cancel(timer.handle()).await? != Cancelled::Done {
                    return Err("a timer that was inserted is not there".into());
                }
            }
            Ok(calls)
        });
        Caller {
            longest,
            is_over,
            task,
        }
    }

    async fn end(self) -> Result<usize, Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.await?
    }
}
