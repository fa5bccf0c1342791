//! What the tasks do: a function for each kind of load.
//!
//! Each goes on until it is told to stop, or its timer is: then its futures are ready before their
//! time and say so, and it ends with `None`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use futures::poll;
use tokio::task::JoinSet;
use waterwheel::{Duration, Instant, MissedTickBehavior, Sleep};

use crate::books::{Books, Kind};
use crate::common::dice::Dice;
use crate::timers::Timers;
use crate::watch::Slot;

const MINUTE: Duration = Duration::from_secs(60);

/// What a task works with.
pub(crate) struct Desk {
    pub(crate) timers: Timers,
    pub(crate) books: Arc<Books>,
    pub(crate) slot: Arc<Slot>,
    pub(crate) stopping: Arc<AtomicBool>,
    pub(crate) dice: Dice,
}

impl Desk {
    fn goes_on(&self) -> bool {
        !self.stopping.load(Relaxed)
    }

    fn millis(&mut self, least: u64, most: u64) -> Duration {
        let millis = Duration::from_millis;
        self.dice.between(millis(least), millis(most))
    }

    /// Waits for a sleep and books it.
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

    /// A sleep that is in the wheel.
    async fn armed(&self, length: Duration) -> Option<Sleep> {
        let mut sleep = self.timers.sleep_until(Instant::now() + length)?;
        let _pending = poll!(&mut sleep);
        Some(sleep)
    }
}

/// Sleeps, one after the other.
pub(crate) async fn sleeps(mut desk: Desk, kind: Kind) -> Option<()> {
    while desk.goes_on() {
        let deadline = Instant::now() + desk.millis(0, 50);
        let mut sleep = desk.timers.sleep_until(deadline)?;
        desk.wait(kind, &mut sleep).await?;
    }
    Some(())
}

/// Arms far more than ever fire, as timeouts of calls that are answered.
pub(crate) async fn cancels(mut desk: Desk) -> Option<()> {
    while desk.goes_on() {
        let mut calls = Vec::new();
        for _ in 0..50 {
            let limit = desk.millis(1_000, 60_000);
            calls.push(desk.armed(limit).await?);
        }
        // Some are answered at once.
        calls.truncate(desk.dice.roll(50) as usize);
        let answer = desk.millis(1, 10);
        desk.pause(answer).await?;
        drop(calls);
        desk.books.cancelled(50);
    }
    Some(())
}

/// Timeouts around something that is done in time, or is not.
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

/// Deadlines that are moved: later and later as an idle deadline is, earlier, to now, and anew.
pub(crate) async fn resets(mut desk: Desk) -> Option<()> {
    while desk.goes_on() {
        let mut idle = desk.armed(Duration::from_millis(20)).await?;
        for _packet in 0..desk.dice.roll(10) {
            let next_packet = desk.millis(1, 5);
            desk.pause(next_packet).await?;
            idle.set_deadline(Instant::now() + Duration::from_millis(20));
        }
        desk.wait(Kind::Reset, &mut idle).await?;

        let mut hastened = desk.armed(MINUTE).await?;
        hastened.set_deadline(Instant::now() + desk.millis(0, 20));
        desk.wait(Kind::Reset, &mut hastened).await?;

        let mut at_once = desk.armed(MINUTE).await?;
        at_once.set_deadline(Instant::now());
        desk.wait(Kind::Reset, &mut at_once).await?;
        at_once.set_deadline(Instant::now() + desk.millis(0, 20));
        desk.wait(Kind::Reset, &mut at_once).await?;
    }
    Some(())
}

/// Intervals of every behaviour, held up now and then; each tick must be where it belongs.
pub(crate) async fn ticks(mut desk: Desk) -> Option<()> {
    while desk.goes_on() {
        let period = desk.millis(2, 40);
        let behavior = match desk.dice.roll(3) {
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
                    "{behavior:?}: a tick {off:?} after the last, with a period of {period:?}"
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

/// Many timers at one tick, each of a task of its own.
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

/// Wakes from a sleep and then blocks its worker, as nobody should.
pub(crate) async fn blocks(mut desk: Desk) -> Option<()> {
    while desk.goes_on() {
        let idle = desk.millis(20, 400);
        desk.pause(idle).await?;
        thread::sleep(desk.millis(5, 50));
        desk.books.blocked();
    }
    Some(())
}
