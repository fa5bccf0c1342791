//! Inserts and deliveries at fixed rates, while millions are pending and a day's bucket cascades.

use std::future::ready;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use fastrand::Rng;
use waterwheel_durable::{Durable, NewTimer, Shift};

use super::pending::{Calendar, DAY, DAYS};
use crate::control::Control;
use crate::place::{
    Failure, HANDLER, PAYLOAD, Place, Played, Span, insert_all, payload, shut_down,
};
use crate::policies::Policies;
use crate::process;
use crate::sample::Sample;
use crate::seen::{Delivered, micros_late};

const CALLERS: u32 = 256;
/// How long before the day begins its bucket cascades.
const LEAD: Duration = Duration::from_secs(3_600);
/// The size of the batches that are inserted before it begins, so that the set-up takes no more memory than the rest.
const BATCH: usize = 8_192;
/// The first byte of the payloads that the row itself inserts to be delivered.
const OURS: u8 = 1;

/// Makes this many inserts a second. One of `soon` inserted timers is due within two seconds, and as many timers that were inserted before the row are due as well. All other inserted timers are due evenly over the month after that of the pending timers.
pub(crate) async fn play(place: Place, inserts: u32, soon: usize, policies: Policies) -> Played {
    let inserts = place.pick(inserts, inserts / 10);
    let time = place.pick(Duration::from_secs(30), Duration::from_secs(2));
    let mut set_up = place.pick(Duration::from_secs(10), Duration::from_secs(5));
    if place.url.is_some() {
        set_up *= 4;
    }
    let calendar = Calendar::read(&place)?;
    // The bucket cascades after a third of the run.
    let begin = calendar.midnight() - LEAD - time / 3;
    let start = SystemTime::now() + set_up;
    let ahead = begin.duration_since(start)?;
    let shift = Arc::new(Shift::default());
    shift.set_wall(i64::try_from(ahead.as_micros())?);
    let builder = policies.builder().shifted_clocks(shift);
    let timers = place.open(builder).await?;
    policies.set_up(&timers).await?;
    policies.set_default(&timers).await?;
    let watched = Arc::new(Watched::default());
    let handler = policies.handler();
    let watch = |name: &str| {
        let watching = Arc::clone(&watched);
        timers.handle(name, move |delivery| {
            let late = micros_late(delivery.due(), ahead);
            watching.delivered(delivery.payload().first() == Some(&OURS), late);
            ready(Ok(()))
        });
    };
    watch(HANDLER);
    if handler != HANDLER {
        watch(handler);
    }
    // Timers that were pending until this day are overdue now. They are not part of the row.
    let overdue = calendar.due_by(&place, begin - set_up).count();
    watched.pending.wait(overdue).await;
    let before = usize::try_from(inserts)? / soon * usize::try_from(time.as_secs())?;
    let mut random = Rng::with_seed(4);
    let millis = u64::try_from(time.as_millis())?;
    let dues = (0..before).map(|_| begin + Duration::from_millis(random.u64(0..millis)));
    let new = dues.map(|due| NewTimer::at(handler, due).bytes(marked()));
    insert_all(&timers, BATCH, new).await?;
    let left = start.duration_since(SystemTime::now());
    tokio::time::sleep(left.map_err(|_| "the set-up took too long")?).await;

    let mut sample = Sample::default();
    let syncs = place.syncs()?;
    let control = Control::start();
    let span = Span::start(&place, &timers)?;
    let end = calendar.end();
    let (inserted, ours) = insert((&timers, handler), (inserts, soon), time, ahead, end).await?;
    span.end(&timers, inserted, &mut sample)?;
    let slept = control.end().await?;
    // Timers that are due by now, but still queued, count with their final lateness.
    watched.ours.wait(before + ours).await;
    sample.set("syncs a second", f64::midpoint(syncs, place.syncs()?));
    Policies::Off.set_default(&timers).await?;
    shut_down(&timers).await?;
    let late = watched.take();
    sample.set("due a second", late.len() as f64 / time.as_secs_f64());
    slept.note(late, before + ours, &mut sample);
    let early = watched.pending.early.load(Ordering::Relaxed) as f64;
    sample.set("early", early + sample.value("early").unwrap_or(0.0));
    sample.set("peak memory", process::peak_memory());
    calendar.pass(&place, SystemTime::now() + ahead)?;
    Ok(sample)
}

/// The observations of the handlers.
#[derive(Debug, Default)]
struct Watched {
    ours: Delivered,
    /// Deliveries from the millions of pending timers.
    pending: Delivered,
    /// The lateness of our own timers, in µs; negative if early.
    late: Mutex<Vec<i64>>,
}

impl Watched {
    fn delivered(&self, is_ours: bool, late: i64) {
        if !is_ours {
            return self.pending.one(late < 0);
        }
        self.late
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(late);
        self.ours.one(late < 0);
    }

    fn take(&self) -> Vec<i64> {
        std::mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn marked() -> Arc<[u8]> {
    Arc::from([OURS; PAYLOAD])
}

/// Returns the number of inserted timers, and how many of them were due soon.
async fn insert(
    (timers, handler): (&Durable, &'static str),
    (inserts, one_of): (u32, usize),
    time: Duration,
    ahead: Duration,
    end: SystemTime,
) -> Result<(usize, usize), Failure> {
    let start = Instant::now();
    let millis = u64::try_from((DAY * DAYS).as_millis())?;
    let pause = Duration::from_secs(1) * CALLERS / inserts;
    let tasks: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let timers = timers.clone();
            tokio::spawn(async move {
                let mut random = Rng::with_seed(u64::from(caller) << 32);
                let mut next = start + pause * caller / CALLERS;
                let (mut inserted, mut soon) = (0_usize, 0);
                while next < start + time {
                    tokio::time::sleep_until(next.into()).await;
                    next += pause;
                    let (due, payload) = if inserted.is_multiple_of(one_of) {
                        soon += 1;
                        let delay = Duration::from_millis(1_000 + random.u64(0..1_000));
                        (SystemTime::now() + ahead + delay, marked())
                    } else {
                        let far = Duration::from_millis(random.u64(0..millis));
                        (end + far, payload())
                    };
                    timers.at(handler, due).bytes(payload).insert().await?;
                    inserted += 1;
                }
                Ok::<_, Failure>((inserted, soon))
            })
        })
        .collect();
    let (mut inserted, mut soon) = (0_usize, 0);
    for task in tasks {
        let (its_inserted, its_soon) = task.await??;
        inserted += its_inserted;
        soon += its_soon;
    }
    Ok((inserted, soon))
}
