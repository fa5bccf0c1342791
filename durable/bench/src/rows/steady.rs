//! Inserts and deliveries at fixed rates, while millions are pending and a day's bucket cascades.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use waterwheel_durable::{Drain, Durable, NewTimer, Shift};

use super::pending::{DAYS, midnight};
use super::spread::Delivered;
use crate::control::Control;
use crate::lateness;
use crate::process;
use crate::random::Random;
use crate::sample::Sample;
use crate::stage::{Failure, HANDLER, Played, Span, Stage, payload};

const CALLERS: u32 = 256;
/// The day's bucket cascades so long before the day begins.
const LEAD: Duration = Duration::from_secs(3_600);
/// One of so many that are inserted is due soon.
const SOON: u64 = 4;

/// So many inserts a second, and half as many deliveries. Half of what is delivered was inserted before, and half of it a second or two ago.
pub(crate) async fn play(stage: Stage, inserts: u32) -> Played {
    let inserts = stage.pick(inserts, inserts / 10);
    let time = stage.pick(Duration::from_secs(30), Duration::from_secs(4));
    let set_up = stage.pick(Duration::from_secs(8), Duration::from_secs(3));
    let shift = Arc::new(Shift::default());
    // A third of the run goes by before the bucket cascades.
    let begin = midnight(&stage)? - LEAD - time / 3;
    let start = SystemTime::now() + set_up;
    let ahead = i64::try_from(begin.duration_since(start)?.as_micros())?;
    shift.set_wall(ahead);
    let builder = Durable::builder().shifted_clocks(Arc::clone(&shift));
    let timers = stage.open(builder).await?;
    let delivered = Arc::new(Delivered::default());
    let late = Arc::new(Mutex::new(Vec::new()));
    let (seen, notes) = (Arc::clone(&delivered), Arc::clone(&late));
    timers.handle(HANDLER, move |delivery| {
        let late = micros_late(delivery.due(), ahead);
        notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(late);
        seen.one(late < 0);
        async { Ok(()) }
    });
    let mut random = Random(4);
    let before = usize::try_from(inserts / 4).unwrap_or(0) * time.as_secs() as usize;
    let millis = u64::try_from(time.as_millis())?;
    let dues = (0..before).map(|_| begin + Duration::from_millis(random.below(millis)));
    let batch: Vec<_> = dues
        .map(|due| NewTimer::at(HANDLER, due).bytes(payload()))
        .collect();
    timers.insert_many(batch).await?;
    let left = start.duration_since(SystemTime::now());
    tokio::time::sleep(left.map_err(|_| "the set-up took too long")?).await;

    let mut sample = Sample::default();
    let syncs = stage.syncs()?;
    let control = Control::start();
    let span = Span::start(&timers);
    let (inserted, soon) = insert(&timers, inserts, time, ahead).await?;
    span.end(&timers, inserted, &mut sample);
    let slept = control.end().await?;
    // What is due by now, and still queued, counts with the lateness that it has in the end.
    delivered.wait(before + soon).await;
    sample.set("syncs a second", f64::midpoint(syncs, stage.syncs()?));
    let late = std::mem::take(&mut *late.lock().unwrap_or_else(PoisonError::into_inner));
    sample.set("due a second", late.len() as f64 / time.as_secs_f64());
    sample.set("early", late.iter().filter(|it| **it < 0).count() as f64);
    lateness::note("late", late, &mut sample);
    lateness::note("thread", slept.thread, &mut sample);
    lateness::note("tokio", slept.task, &mut sample);
    timers
        .shutdown(Drain::within(Duration::from_secs(30)))
        .await?;
    let all = delivered.all.load(std::sync::atomic::Ordering::Relaxed);
    sample.set("twice", all.saturating_sub(before + soon) as f64);
    sample.set("peak memory", process::peak_memory());
    Ok(sample)
}

/// How much later than due, in µs: less than 0 if it is early.
fn micros_late(due: SystemTime, ahead: i64) -> i64 {
    let now = SystemTime::now();
    let late = match now.duration_since(due) {
        Ok(late) => i64::try_from(late.as_nanos()),
        Err(early) => i64::try_from(early.duration().as_nanos()).map(|nanos| -nanos),
    };
    late.map_or(i64::MAX, |nanos| nanos.div_euclid(1_000)) + ahead
}

/// Returns how many were inserted, and how many of these are due soon.
async fn insert(
    timers: &Durable,
    inserts: u32,
    time: Duration,
    ahead: i64,
) -> Result<(usize, usize), Failure> {
    let start = Instant::now();
    let pause = Duration::from_secs(1) * CALLERS / inserts;
    let tasks: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let timers = timers.clone();
            tokio::spawn(async move {
                let mut random = Random(u64::from(caller) << 32);
                let mut next = start + pause * caller / CALLERS;
                let (mut inserted, mut soon) = (0, 0);
                while next < start + time {
                    tokio::time::sleep_until(next.into()).await;
                    next += pause;
                    let present = SystemTime::now() + Duration::from_micros(ahead.unsigned_abs());
                    let due = if inserted as u64 % SOON == 0 {
                        soon += 1;
                        Duration::from_millis(1_000 + random.below(1_000))
                    } else {
                        // From the first of the pending ones on.
                        LEAD + time + Duration::from_millis(random.below(DAYS * 86_400_000))
                    };
                    let timer = timers.at(HANDLER, present + due).bytes(payload());
                    timer.insert().await?;
                    inserted += 1;
                }
                Ok::<_, Failure>((inserted, soon))
            })
        })
        .collect();
    let (mut inserted, mut soon) = (0, 0);
    for task in tasks {
        let (its_inserted, its_soon) = task.await??;
        inserted += its_inserted;
        soon += its_soon;
    }
    Ok((inserted, soon))
}
