//! Inserts with random business keys.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastrand::Rng;
use waterwheel_durable::{Durable, NewTimer};

use super::pending::DAY;
use crate::callers::{call, measured};
use crate::place::{HANDLER, Place, Played, insert_all, payload, shut_down};
use crate::process;
use crate::sample::Sample;

const CALLERS: usize = 1_024;
const BATCH: usize = 16_384;
const DAYS: u32 = 30;

/// Inserts with several callers, into an empty file or one with millions of keys.
pub(crate) async fn play(place: Place) -> Played {
    let timers = place.open(Durable::builder()).await?;
    // Each process uses different keys.
    let salt = SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos();
    let now = SystemTime::now();
    let insert = |time: Duration, salt: u32| {
        let timers = timers.clone();
        call(CALLERS, time, move |caller, number| {
            let seed = (u64::from(salt) << 32) ^ ((number * CALLERS + caller) as u64);
            let mut random = Rng::with_seed(seed.wrapping_mul(0xd134_2543_de82_ef95));
            let (due, key) = (due(now, &mut random), key(&mut random));
            let timers = timers.clone();
            Some(async move {
                let timer = timers.at(HANDLER, due).key(key).bytes(payload());
                match timer.insert().await?.is_new() {
                    true => Ok(()),
                    false => Err("a key that is not random".into()),
                }
            })
        })
    };
    let warm_up = place.pick(Duration::from_millis(300), Duration::from_millis(100));
    insert(warm_up, salt).await?;
    // Long enough for several runs of the index to be written and merged.
    let time = place.pick(Duration::from_secs(5), Duration::from_millis(500));
    let mut sample = measured(&place, &timers, insert(time, !salt)).await?;
    shut_down(&timers).await?;
    sample.set("peak memory", process::peak_memory());
    Ok(sample)
}

/// Inserts millions of timers in batches, to build the file.
pub(crate) async fn prepare(place: Place) -> Played {
    let timers = place.open(Durable::builder()).await?;
    let mut random = Rng::with_seed(9);
    let now = SystemTime::now();
    let new = (0..place.pending).map(|_| {
        let due = due(now, &mut random);
        NewTimer::at(HANDLER, due)
            .key(key(&mut random))
            .bytes(payload())
    });
    insert_all(&timers, BATCH, new).await?;
    shut_down(&timers).await?;
    let mut sample = Sample::default();
    let bytes = place.size()? / place.pending as f64;
    sample.set("bytes on disk each", bytes);
    sample.set("peak memory", process::peak_memory());
    Ok(sample)
}

/// A due time, evenly distributed over the month after the next days.
fn due(now: SystemTime, random: &mut Rng) -> SystemTime {
    let millis = u64::try_from((DAY * DAYS).as_millis()).unwrap_or(u64::MAX);
    now + DAY * 2 + Duration::from_millis(random.u64(0..millis))
}

pub(super) fn key(random: &mut Rng) -> [u8; 16] {
    let mut key = [0; 16];
    for part in key.chunks_exact_mut(8) {
        part.copy_from_slice(&random.u64(..).to_le_bytes());
    }
    key
}
