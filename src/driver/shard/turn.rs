//! What the driver does with a shard: turn it, stop it, drain it, count it.

use std::task::Waker;

use super::{Shard, State};
use crate::driver::batch::Batch;
use crate::driver::metrics::{Lateness, Metrics};
use crate::sync::atomic::Ordering;
use crate::wheel::{CASCADES_PER_FIRE, Key, Met, Tick, Verdict, Walk, Wheel};
use tokio::time::Instant;

/// How many timers are served with a shard's lock held; and by a turn of a shard, before it gives
/// way to the tasks that it woke, unless it came late.
pub(in crate::driver) const BITE: usize = 128;

// Whether a thread turns a shard: no; yes; yes, and the driver has come by meanwhile.
pub(super) const NO: u8 = 0;
const YES: u8 = 1;
const MISSED: u8 = 2;

/// How many timers the turns of a shard serve in order before they are fair, if the first after a sleep does not serve
/// more.
const IN_ORDER: usize = 1024;

/// What the driver gives a shard of its turn.
#[derive(Debug, Clone, Copy)]
pub(in crate::driver) struct Share {
    /// At most so many timers.
    pub(in crate::driver) bite: usize,
    /// It is the first turn after a sleep.
    pub(in crate::driver) is_first: bool,
}

/// Who turns a shard.
#[derive(Debug, Clone, Copy)]
enum By {
    /// The driver, with what is left of its share, this part included.
    Driver(Share),
    Help,
}

impl Shard {
    /// Serves a `share` of the timers that are due by `now`, which is in `tick`, and wakes their tasks.
    ///
    /// # Order
    ///
    /// The first turn after a sleep serves in order of deadline, equal ticks first in, first out; so do others until they
    /// have served 1024. If that does not reach the end, the turns after it are fair instead: they serve the oldest and
    /// the freshest alternately, so that a herd does not hold up its neighbours. On a clock that is or was paused every turn serves in
    /// order: there, time waits for the driver.
    ///
    /// Wakers are woken without the lock, so two turns at once would mix the order. A shard that another thread turns is
    /// left to that thread, which wakes the driver afterwards; then this tells `false`.
    pub(in crate::driver) fn turn(
        &self,
        now: Instant,
        tick: Tick,
        mut share: Share,
        batch: &mut Batch,
    ) -> bool {
        if self.next() > tick {
            return true;
        }
        let begin = |turning| Some(if turning == NO { YES } else { MISSED });
        let before = self
            .turning
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, begin);
        if before != Ok(NO) {
            return false;
        }
        while share.bite > 0 && self.next() <= tick {
            self.turn_part(now, tick, By::Driver(share), batch);
            batch.wake();
            share.bite -= share.bite.min(BITE);
        }
        batch.finish();
        self.end_turn();
        true
    }

    /// Serves one part of a turn for a driver that is late.
    pub(in crate::driver) fn help(&self, now: Instant) {
        let begun = self
            .turning
            .compare_exchange(NO, YES, Ordering::AcqRel, Ordering::Acquire);
        if begun.is_err() {
            return;
        }
        let mut batch = Batch::default();
        self.turn_part(now, self.clock.tick_before(now), By::Help, &mut batch);
        batch.finish();
        self.end_turn();
    }

    fn end_turn(&self) {
        if self.turning.swap(NO, Ordering::AcqRel) == MISSED {
            self.shared.ring();
        }
    }

    /// Moves the hand and puts the wakers of at most a bite of timers that are due by `now` into `batch`.
    fn turn_part(&self, now: Instant, tick: Tick, by: By, batch: &mut Batch) {
        let budget = match by {
            By::Driver(share) => share.bite.min(BITE),
            By::Help => BITE,
        };
        let clock = &self.clock;
        let is_warped = self.shared.is_warped();
        let mut state = self.state.lock();
        let State {
            wheel: Some(wheel),
            fired,
            lateness,
            in_order,
            gave_way,
            ..
        } = &mut *state
        else {
            return;
        };
        let until = tick.max(wheel.now());
        let mut judge = Judge {
            shard: self,
            nanos: clock.nanos(now),
            fired,
            lateness,
            last: (Tick::MAX, 0),
            batch,
        };
        let progress = if is_warped || !*gave_way {
            let (cascades, walk) = match by {
                // However far a clock that can be paused has jumped, that is one turn.
                _ if is_warped => (usize::MAX, Walk::Front),
                // Two misses of the cache at once, where no turn goes on in order after this one. For what keeps the
                // order of this one see `batch`.
                By::Driver(share) if share.is_first || *in_order + share.bite >= IN_ORDER => {
                    (budget * CASCADES_PER_FIRE, Walk::FrontAndBack)
                }
                _ => (budget * CASCADES_PER_FIRE, Walk::Front),
            };
            let in_order =
                |met: Met, key, filed, waker: &mut _| judge.judge(met, key, filed, waker);
            wheel.advance_slot_by_slot(until, budget, cascades, walk, in_order, |_, _| ())
        } else {
            let met = Met {
                hand: until,
                at_back: false,
            };
            let fair = |key, filed, waker: &mut _| judge.judge(met, key, filed, waker);
            wheel.advance(until, budget, fair, |_, _| ())
        };
        if progress.backlog {
            *in_order += budget;
            if let By::Driver(Share { bite, is_first }) = by {
                *gave_way |= bite <= BITE && (is_first || *in_order >= IN_ORDER);
            }
        } else {
            (*in_order, *gave_way) = (0, false);
        }
        let next = wheel.quiet_until();
        state.published = next;
        self.next.store(next.get(), Ordering::SeqCst);
        self.unlock(state);
    }

    /// Ends everything that is pending and gives its wakers.
    pub(in crate::driver) fn stop(&self) -> Vec<Waker> {
        let mut state = self.state.lock();
        let Some(mut wheel) = state.wheel.take() else {
            return Vec::new();
        };
        state.stopped += wheel.len() as u64;
        state.cascaded = wheel.cascaded();
        state.published = Tick::MAX;
        self.next.store(Tick::MAX.get(), Ordering::SeqCst);
        drop(state);
        wheel.drain().flatten().collect()
    }

    /// From now on, tells when nothing is pending any more.
    pub(in crate::driver) fn start_draining(&self) {
        self.state.lock().draining = true;
    }

    pub(in crate::driver) fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.wheel.as_ref().is_none_or(Wheel::is_empty)
    }

    pub(in crate::driver) fn add_to(&self, metrics: &mut Metrics) {
        let state = self.state.lock();
        let wheel = state.wheel.as_ref();
        metrics.armed += state.armed;
        metrics.fired += state.fired;
        metrics.cancelled += state.cancelled;
        metrics.stopped += state.stopped;
        metrics.pending += wheel.map_or(0, |wheel| wheel.len() as u64);
        metrics.cascaded += wheel.map_or(state.cascaded, Wheel::cascaded);
        metrics.lateness.add(&state.lateness);
    }
}

/// Says what becomes of the timers that come up in a turn.
struct Judge<'a> {
    shard: &'a Shard,
    /// What time it is.
    nanos: u128,
    fired: &'a mut u64,
    lateness: &'a mut Lateness,
    /// The last deadline, and how late it was.
    last: (Tick, u64),
    batch: &'a mut Batch,
}

impl Judge<'_> {
    /// Always inlined: into each of the two walks, which otherwise call it for each timer.
    #[inline(always)]
    fn judge(&mut self, met: Met, key: Key, filed: Tick, waker: &mut Option<Waker>) -> Verdict {
        let parked = self.shard.postponed.park_due(key.index(), filed, met.hand);
        let deadline = match parked {
            Ok(deadline) => deadline,
            Err(later) => return Verdict::Postpone(later),
        };
        *self.fired += 1;
        // Most come up with others of their tick.
        if deadline != self.last.0 {
            let late = self.shard.clock.nanos_since(self.nanos, deadline);
            self.last = (deadline, late);
        }
        self.lateness.record(self.last.1);
        if let Some(waker) = waker.take() {
            self.batch.push(met, waker);
        }
        Verdict::Disarm
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    use tokio::runtime::Builder;
    use tokio::time::{Duration, Instant};

    use super::{BITE, Share};
    use crate::driver::Timer;
    use crate::driver::batch::Batch;
    use crate::wheel::Tick;

    /// What is due before all that arrives.
    const HERD: usize = 20_000;
    /// What comes due in each step, in which a turn serves 128.
    const ARRIVALS: usize = 500;
    const STEPS: usize = 40;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Timers due at one tick, and how many of them have been woken.
    struct Group {
        woken: Arc<Woken>,
        _sleeps: Box<dyn Any>,
    }

    impl Group {
        fn arm(timer: &Timer, count: usize, deadline: Instant) -> Group {
            let woken = Arc::new(Woken::default());
            let waker = Waker::from(Arc::clone(&woken));
            let sleeps = (0..count).map(|_| {
                let mut sleep = timer.sleep_until(deadline);
                let mut context = Context::from_waker(&waker);
                assert!(pin!(&mut sleep).poll(&mut context).is_pending());
                sleep
            });
            Group {
                _sleeps: Box::new(sleeps.collect::<Vec<_>>()),
                woken,
            }
        }

        fn woken(&self) -> usize {
            self.woken.0.load(Ordering::SeqCst)
        }
    }

    // `tests/wheel/fairness` says it of the wheel. On a clock that runs: where it is paused, time waits for the driver,
    // which serves in order. The turns are told a time that the driver itself does not reach.
    #[test]
    fn under_a_steady_overload_neither_the_oldest_nor_the_freshest_starve() {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .unwrap();
        let timer = Timer::builder().start_on(runtime.handle()).unwrap();
        let shard = Arc::clone(timer.shard());
        // In the middle of a second of the wheel's.
        let due = shard.clock().instant_of(Tick::new(3_600_500)).unwrap();
        let mut batch = Batch::default();
        let mut turn = |now: Instant| {
            let tick = shard.clock().tick_before(now);
            let share = Share {
                bite: BITE,
                is_first: true,
            };
            assert!(shard.turn(now, tick, share, &mut batch));
        };
        let herd = Group::arm(&timer, HERD, due);
        // All of it is to lie on the first dial when it comes due.
        let before = due - Duration::from_millis(100);
        while shard.next() <= shard.clock().tick_before(before) {
            turn(before);
        }
        turn(due);
        assert_eq!(herd.woken(), BITE);

        let mut arrived: Vec<Group> = Vec::new();
        let all_woken = |arrived: &[Group]| arrived.iter().map(Group::woken).sum::<usize>();
        for step in 0..STEPS {
            let now = due + Duration::from_millis(step as u64 + 1);
            arrived.push(Group::arm(&timer, ARRIVALS, now));
            let before = (herd.woken(), all_woken(&arrived));
            turn(now);
            let old = herd.woken() - before.0;
            assert!(old > 0, "none of the oldest in step {step}");
            let freshest = arrived[step].woken();
            assert!(freshest > 0, "none of the freshest in step {step}");
            assert_eq!(old + all_woken(&arrived) - before.1, BITE);
        }
        let (old, new) = (herd.woken() - BITE, all_woken(&arrived));
        assert!(
            old >= new / 2 && new >= old / 2,
            "{old} of the herd and {new} that came after it"
        );

        // What was left over is neither lost nor woken twice.
        let end = due + Duration::from_secs(1);
        while timer.metrics().pending() > 0 {
            turn(end);
        }
        assert_eq!(herd.woken(), HERD);
        assert!(arrived.iter().all(|group| group.woken() == ARRIVALS));
    }
}
