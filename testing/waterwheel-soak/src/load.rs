//! The work of the tasks: one function for each kind of load.
//!
//! Each function runs until `stopping` is set, and then returns `Some`. If its timer is stopped first, its futures become ready
//! before their deadlines, `was_stopped` returns `true`, and the function returns `None`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use futures::poll;
use tokio::task::JoinSet;
use waterwheel::{Duration, Instant, MissedTickBehavior, Sleep};
use waterwheel_bench_kit::random;

use crate::books::{Books, Kind};
use crate::timers::Timers;
use crate::watch::Slot;

const MINUTE: Duration = Duration::from_secs(60);

/// The tools of a task.
pub(crate) struct Desk {
    pub(crate) timers: Timers,
    pub(crate) books: Arc<Books>,
    pub(crate) slot: Arc<Slot>,
    pub(crate) stopping: Arc<AtomicBool>,
    pub(crate) random: fastrand::Rng,
}

impl Desk {
    fn goes_on(&self) -> bool {
        !self.stopping.load(Relaxed)
    }

    fn millis(&mut self, least: u64, most: u64) -> Duration {
        let millis = Duration::from_millis;
        random::duration(&mut self.random, millis(least)..millis(most))
    }

    /// Waits for a sleep and counts it.
    async fn wait(&self, kind: Kind, sleep: &mut Sleep) -> Option<()> {
        let deadline = sleep.deadline();
        self.slot.expects(1, deadline);
        (&mut *sleep).await;
        self.slot.all_done();
        if sleep.was_stopped() {
            return None;
        }
        self.books.done(kind, deadline);
        Some(())
    }

    async fn pause(&self, length: Duration) -> Option<()> {
        let mut sleep = self.timers.sleep_until(Instant::now() + length)?;
        self.wait(Kind::Sleep, &mut sleep).await
    }

    /// Returns a sleep that has been polled, so that it is armed.
    async fn armed(&self, length: Duration) -> Option<Sleep> {
        let mut sleep = self.timers.sleep_until(Instant::now() + length)?;
        let _pending = poll!(&mut sleep);
        Some(sleep)
    }
}

/// One sleep after another.
pub(crate) async fn sleeps(mut desk: Desk, kind: Kind) -> Option<()> {
    while desk.goes_on() {
        let deadline = Instant::now() + desk.millis(0, 50);
        let mut sleep = desk.timers.sleep_until(deadline)?;
        desk.wait(kind, &mut sleep).await?;
    }
    Some(())
}

/// Arms many timers and cancels nearly all of them, like the timeouts of calls that are answered.
pub(crate) async fn cancels(mut desk: Desk) -> Option<()> {
    while desk.goes_on() {
        let mut calls = Vec::new();
        for _ in 0..50 {
            let limit = desk.millis(1_000, 60_000);
            calls.push(desk.armed(limit).await?);
        }
        // The calls that are removed here are answered at once.
        calls.truncate(desk.random.usize(0..50));
        let answer = desk.millis(1, 10);
        desk.pause(answer).await?;
        drop(calls);
        desk.books.cancelled.add(50);
    }
    Some(())
}

/// Timeouts around calls, some of which are answered in time.
pub(crate) async fn timeouts(mut desk: Desk) -> Option<()> {
    while desk.goes_on() {
        let now = Instant::now();
        let limit = now + desk.millis(1, 40);
        let answer = now + desk.millis(0, 60);
        let mut inner = desk.timers.sleep_until(answer)?;
        let call = async {
            (&mut inner).await;
            inner.was_stopped()
        };
        let limited = desk.timers.timeout_at(limit, call)?;
        desk.slot.expects(1, limit.min(answer));
        let outcome = limited.await;
        desk.slot.all_done();
        match outcome {
            Ok(true) => return None,
            Ok(false) => desk.books.done(Kind::Timeout, answer),
            Err(elapsed) if elapsed.was_stopped() => return None,
            Err(_elapsed) => desk.books.done(Kind::Timeout, limit),
        }
    }
    Some(())
}

/// Moves deadlines: postpones one repeatedly, like an idle deadline, moves others earlier and to now, and arms one again after it
/// has fired.
pub(crate) async fn resets(mut desk: Desk) -> Option<()> {
    while desk.goes_on() {
        let mut idle = desk.armed(Duration::from_millis(20)).await?;
        for _packet in 0..desk.random.u32(0..10) {
            let next_packet = desk.millis(1, 5);
            desk.pause(next_packet).await?;
            idle.set_deadline(Instant::now() + Duration::from_millis(20));
        }
        desk.wait(Kind::Reset, &mut idle).await?;

        let mut earlier = desk.armed(MINUTE).await?;
        earlier.set_deadline(Instant::now() + desk.millis(0, 20));
        desk.wait(Kind::Reset, &mut earlier).await?;

        let mut at_once = desk.armed(MINUTE).await?;
        at_once.set_deadline(Instant::now());
        desk.wait(Kind::Reset, &mut at_once).await?;
        at_once.set_deadline(Instant::now() + desk.millis(0, 20));
        desk.wait(Kind::Reset, &mut at_once).await?;
    }
    Some(())
}

/// Intervals of every `MissedTickBehavior`. The task is sometimes too late for them, and checks where each tick falls.
pub(crate) async fn ticks(mut desk: Desk) -> Option<()> {
    while desk.goes_on() {
        let period = desk.millis(2, 40);
        let behavior = match desk.random.u32(0..3) {
            0 => MissedTickBehavior::Burst,
            1 => MissedTickBehavior::Delay,
            _ => MissedTickBehavior::Skip,
        };
        let mut interval = desk.timers.interval(period)?;
        interval.set_missed_tick_behavior(behavior);
        let first = interval.try_tick().await.ok()?;
        let mut last = first;
        for count in 1..=40 {
            let waits_since = Instant::now();
            desk.slot.expects(1, waits_since.max(last + period));
            let tick = interval.try_tick().await;
            desk.slot.all_done();
            let tick = tick.ok()?;
            if tick >= waits_since {
                desk.books.done(Kind::Tick, tick);
            } else {
                desk.books.done_unawaited(Kind::Tick, tick);
            }
            let in_place = match behavior {
                MissedTickBehavior::Burst => tick == last + period,
                MissedTickBehavior::Delay => tick >= last + period,
                MissedTickBehavior::Skip => {
                    tick > last && (tick - first).as_nanos() % period.as_nanos() == 0
                }
            };
            if !in_place {
                let off = tick.saturating_duration_since(last);
                desk.books.wrong(format!(
                    "{behavior:?}: a tick {off:?} after the last one, with a period of {period:?}"
                ));
            }
            last = tick;
            if !desk.goes_on() {
                break;
            }
            if count % 15 == 0 {
                desk.pause(period * 5 / 2).await?;
            }
        }
    }
    Some(())
}

/// Many timers with one deadline, each in its own task.
pub(crate) async fn herds(mut desk: Desk, size: u64) -> Option<()> {
    while desk.goes_on() {
        let deadline = Instant::now() + desk.millis(50, 250);
        desk.slot.expects(size, deadline);
        let mut herd = JoinSet::new();
        for _ in 0..size {
            let (books, slot) = (Arc::clone(&desk.books), Arc::clone(&desk.slot));
            let mut sleep = desk.timers.sleep_until(deadline)?;
            herd.spawn(async move {
                (&mut sleep).await;
                slot.one_done();
                if sleep.was_stopped() {
                    return false;
                }
                books.done(Kind::Herd, deadline);
                true
            });
        }
        let mut all_fired = true;
        while let Some(fired) = herd.join_next().await {
            all_fired &= fired.unwrap_or(false);
        }
        desk.slot.all_done();
        if !all_fired {
            return None;
        }
    }
    Some(())
}

/// Wakes from a sleep and then blocks its worker, as a faulty handler does.
pub(crate) async fn blocks(mut desk: Desk) -> Option<()> {
    while desk.goes_on() {
        let idle = desk.millis(20, 400);
        desk.pause(idle).await?;
        thread::sleep(desk.millis(5, 50));
        desk.books.blocked.add(1);
    }
    Some(())
}
