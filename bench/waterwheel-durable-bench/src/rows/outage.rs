//! A namespace A whose target does not answer. Does another one, B, notice it?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use fastrand::Rng;
use waterwheel_durable::{Backoff, Drain, Durable, Namespace, Policy, Rate, Retry, Shift};

use super::limited::insert;
use crate::control::Control;
use crate::place::{Failure, HANDLER, Place, Played};
use crate::process;
use crate::sample::Sample;
use crate::seen::{Seen, now, pass};

/// The rate of each of the two, in timers a second.
const RATE: u32 = 1_000;
/// The number of deliveries that A may begin at once on top of its rate: a fortieth of those that are counted as it drains.
const BURST: u32 = 125;
const HOUR: Duration = Duration::from_secs(3_600);
const LONGEST_DELAY: Duration = Duration::from_secs(600);
/// The step of the simulated hour. After each step, time runs normally for a moment.
const STEP: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_millis(150);

/// The fate of A's deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outage {
    None,
    /// Each delivery takes a minute. Ten minutes' timers wait behind them.
    Hangs,
    /// Each attempt has failed for an hour, and fails while B is measured. After that, none fails.
    Fails,
}

pub(crate) async fn play(place: Place, outage: Outage) -> Played {
    let time = place.pick(Duration::from_secs(20), Duration::from_secs(2));
    let mut sample = Sample::default();
    let before = place.syncs()?;
    let shift = Arc::new(Shift::default());
    let builder = Durable::builder().shifted_clocks(Arc::clone(&shift));
    let timers = place.open(builder).await?;
    let backoff = Backoff::new(Duration::from_secs(15), LONGEST_DELAY).max_attempts(1_000);
    let policy = Policy::default().backoff(backoff);
    let failing = timers.create_namespace("a", policy.clone()).await?;
    let other = timers.create_namespace("b", Policy::default()).await?;
    let late = Arc::new(Seen::default());
    let calls = Arc::new(Calls::default());
    calls.is_out.store(outage != Outage::None, Ordering::SeqCst);
    if outage == Outage::Hangs {
        let backlog = place.pick(600_000, 20_000);
        insert(&timers, &failing, backlog, |_| SystemTime::now()).await?;
    }
    late.see(&other, &shift, Duration::ZERO);
    serve(&failing, outage, &calls);
    if outage == Outage::Fails {
        fail_for_an_hour(&place, &timers, &failing, &shift, &mut sample).await?;
        let attempts = calls.failed.load(Ordering::SeqCst);
        sample.set("attempts in the hour", attempts as f64);
        let limit = policy.clone().rate(Rate::per_second(RATE).burst(BURST));
        failing.set_policy(limit).await?;
        pass(&shift, LONGEST_DELAY);
    }
    let count = RATE as usize * usize::try_from(time.as_secs())?;
    let begin = now(&shift) + place.pick(Duration::from_secs(4), Duration::from_secs(2));
    let mut random = Rng::with_seed(10);
    let millis = u64::try_from(time.as_millis())?;
    let mut due = |_| begin + Duration::from_millis(random.u64(0..millis));
    insert(&timers, &other, count, &mut due).await?;
    if outage != Outage::Fails {
        insert(&timers, &failing, count, &mut due).await?;
    }
    let left = begin.duration_since(now(&shift));
    tokio::time::sleep(left.map_err(|_| "the set-up took too long")?).await;
    let control = Control::start();
    // By then, hanging deliveries fill all the memory that they may take, and the store's cache is full.
    tokio::time::sleep(time / 4).await;
    let memory = process::memory();
    tokio::time::sleep(time / 4 * 3).await;
    let slept = control.end().await?;
    while late.len() < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    if outage == Outage::Fails {
        drain(&place, &calls, &shift, &mut sample).await?;
    } else {
        sample.set("memory at the start", memory);
        sample.set("memory at the end", process::memory());
    }
    let limit = place.pick(Duration::from_secs(1), Duration::from_millis(200));
    timers.shutdown(Drain::within(limit)).await?;
    sample.set("syncs a second", f64::midpoint(before, place.syncs()?));
    let late: Vec<_> = late.take().into_iter().map(|(_, late)| late).collect();
    slept.note(late, count, &mut sample);
    Ok(sample)
}

/// The state that A's handler shares.
#[derive(Debug, Default)]
struct Calls {
    is_out: AtomicBool,
    failed: AtomicUsize,
    /// The deliveries that succeeded.
    well: Seen,
}

fn serve(namespace: &Namespace, outage: Outage, calls: &Arc<Calls>) {
    let calls = Arc::clone(calls);
    namespace.handle(HANDLER, move |_| {
        let is_out = calls.is_out.load(Ordering::SeqCst);
        match is_out {
            true => {
                calls.failed.fetch_add(1, Ordering::SeqCst);
            }
            false => calls.well.one(0),
        }
        async move {
            match outage {
                Outage::Hangs => tokio::time::sleep(Duration::from_secs(60)).await,
                Outage::Fails if is_out => return Err(Retry::backoff("connection refused")),
                Outage::None | Outage::Fails => {}
            }
            Ok(())
        }
    });
}

/// Lets ten timers of A come due a second, for an hour, with every attempt failing.
async fn fail_for_an_hour(
    place: &Place,
    timers: &Durable,
    failing: &Namespace,
    shift: &Shift,
    sample: &mut Sample,
) -> Result<(), Failure> {
    let count = place.pick(36_000, 3_600);
    let begin = SystemTime::now();
    let due = |number| begin + HOUR * number as u32 / count as u32;
    insert(timers, failing, count, due).await?;
    let steps = HOUR.as_secs() / STEP.as_secs();
    for step in 0..steps {
        pass(shift, STEP);
        tokio::time::sleep(place.pick(MOMENT, MOMENT / 5)).await;
        // The first of them have reached the longest delay.
        if step == steps / 2 {
            sample.set("memory at the start", process::memory());
        }
    }
    sample.set("memory at the end", process::memory());
    Ok(())
}

/// Drains the failed timers: they are due again, and none fails. How many begin in a second?
async fn drain(
    place: &Place,
    calls: &Calls,
    shift: &Shift,
    sample: &mut Sample,
) -> Result<(), Failure> {
    calls.is_out.store(false, Ordering::SeqCst);
    pass(shift, LONGEST_DELAY);
    calls.well.take();
    let start = Instant::now();
    tokio::time::sleep(place.pick(Duration::from_secs(5), Duration::from_secs(2))).await;
    let drained = calls.well.len() as f64 / start.elapsed().as_secs_f64();
    sample.set("limited a second", drained);
    Ok(())
}
