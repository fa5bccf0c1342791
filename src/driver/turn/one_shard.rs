//! A turn of one shard: batches of timers are served with the lock held, and woken in between.

use std::hint::black_box;
use std::task::Waker;

use tokio::time::{Duration, Instant};

use crate::clock::Clock;
use crate::driver::metrics::Lateness;
use crate::driver::shard::{Locked, Order, Shard};
use crate::sync::wake_all;
use crate::wheel::{CASCADES_PER_TIMER, Key, Met, Tick, Verdict, Walk, Wheel};

/// How many timers the turns of a shard serve in order before they are fair, if the first after a sleep does not serve more.
const IN_ORDER: usize = 1024;

/// How far a turn has got with a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turned {
    /// No timer is left that is due.
    All,
    /// The turn has used up its allowance, and some timers are left.
    Backlog,
    /// Another thread turns the shard, or a catch-up task has it. The driver is woken afterwards.
    LeftOut,
}

/// From how many pending timers on the entries are read ahead. The entries of fewer are in the cache (16 384: 640 KB).
const MANY: usize = 16_384;
/// The maximum number of timers read ahead with the lock held: about as long as a batch took that had to wait for each.
const AHEAD: usize = 1024;

/// Who turns a shard.
#[derive(Debug, Clone, Copy)]
enum By {
    /// The driver, the first turn, or a catch-up that has the shard from the driver. With what is left of its allowance, this batch
    /// included.
    Driver(Allowance),
    CatchUp,
}

// Two of these are not inlined: among the registers of the walk they cost 3 of 270 instructions a timer (`fire`).
impl By {
    /// How many timers the next batch may serve.
    fn budget(self) -> usize {
        match self {
            By::Driver(allowance) => allowance.timers.min(BATCH),
            By::CatchUp => BATCH,
        }
    }

    /// Whether the turns after this one are fair, if it leaves a backlog.
    #[inline(never)]
    fn is_last_in_order(self, order: &Order) -> bool {
        match self {
            By::Driver(Allowance {
                timers, is_first, ..
            }) => is_first || order.served + timers >= IN_ORDER,
            By::CatchUp => false,
        }
    }

    /// Notes how far a batch has served in order.
    #[inline(never)]
    fn note(self, order: &mut Order, has_backlog: bool, is_last_in_order: bool) {
        if !has_backlog {
            *order = Order::default();
            return;
        }
        order.served += self.budget();
        let is_last_batch = matches!(self, By::Driver(allowance) if allowance.timers <= BATCH);
        order.gave_way |= is_last_in_order && is_last_batch;
    }
}

/// Serves the timers of a shard that are due by `now`, which is in `tick`, as far as the allowance goes. Wakes their tasks.
///
/// # Order
///
/// The first turn after a sleep serves in order of deadline, equal ticks first in, first out. So do other turns until they have
/// served [`IN_ORDER`] timers. If that does not reach the end, the turns after it are fair instead: they serve the oldest and the
/// freshest alternately, so that a herd does not hold up its neighbours. On a clock that is or was paused every turn serves in
/// order: there, time waits for the driver.
pub(super) fn turn(
    shard: &Shard,
    now: Instant,
    tick: Tick,
    allowance: Allowance,
    wakers: &mut Wakers,
) -> Turned {
    if shard.next() > tick {
        return Turned::All;
    }
    if !shard.turning.begin() {
        return Turned::LeftOut;
    }
    turn_to_the_end(shard, now, tick, allowance, wakers)
}

/// A turn by a catch-up task, which the driver has given the shard to.
pub(super) fn turn_given(
    shard: &Shard,
    now: Instant,
    tick: Tick,
    allowance: Allowance,
    wakers: &mut Wakers,
) -> Turned {
    if !shard.turning.begin_if_free() {
        return Turned::LeftOut;
    }
    turn_to_the_end(shard, now, tick, allowance, wakers)
}

/// A turn that has begun.
#[inline]
fn turn_to_the_end(
    shard: &Shard,
    now: Instant,
    tick: Tick,
    mut allowance: Allowance,
    wakers: &mut Wakers,
) -> Turned {
    let _turn = Turn(shard);
    let mut has_backlog = false;
    while allowance.timers > 0 && shard.next() <= tick {
        has_backlog = serve_batch(shard, now, tick, By::Driver(allowance), wakers);
        // Between two batches, with no lock held: the tasks of the first run while the second is served.
        wakers.wake();
        allowance.timers -= allowance.timers.min(BATCH);
    }
    wakers.finish();
    match has_backlog {
        true => Turned::Backlog,
        false => Turned::All,
    }
}

/// Serves all that is due by `now`, in order, and wakes it. The hand is moved to `now` even if nothing is due.
pub(super) fn turn_by_hand(shard: &Shard, now: Instant, wakers: &mut Wakers) {
    let tick = shard.clock().tick_before(now);
    // As a catch-up, whose turns are never the last in order.
    while serve_batch(shard, now, tick, By::CatchUp, wakers) {
        wakers.wake();
    }
    wakers.finish();
}

/// Serves one batch for a driver that is late.
pub(super) fn catch_up(shard: &Shard, now: Instant) {
    if !shard.turning.begin_if_free() {
        return;
    }
    let _turn = Turn(shard);
    let mut wakers = Wakers::default();
    let tick = shard.clock().tick_before(now);
    serve_batch(shard, now, tick, By::CatchUp, &mut wakers);
    wakers.finish();
}

/// A turn that has begun. It ends when this is dropped, so that no panic leaves a shard that is never turned again.
struct Turn<'a>(&'a Shard);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.0.turning.end() {
            self.0.wakeup().wake();
        }
    }
}

/// Moves the hand, and puts the wakers of at most a batch of timers that are due by `now` into `wakers`. Returns whether some are left.
fn serve_batch(shard: &Shard, now: Instant, tick: Tick, by: By, wakers: &mut Wakers) -> bool {
    let budget = by.budget();
    let was_paused = shard.clock().was_paused();
    let mut locked = shard.lock();
    let Locked {
        wheel: Some(wheel),
        fired,
        lateness,
        order,
        read_until,
        ..
    } = &mut *locked
    else {
        return false;
    };
    // A turn of another thread may have moved the hand further, by a later look at the clock.
    let until = tick.max(wheel.now());
    // Not in a fair turn: what it serves is not what comes next.
    if !order.gave_way && wheel.len() >= MANY && wheel.now() >= *read_until {
        *read_until = read_ahead(shard, wheel, until);
    }
    let mut judge = Judge {
        shard,
        nanos: shard.clock().nanos(now),
        fired,
        lateness,
        last: (Tick::MAX, 0),
        wakers,
    };
    let is_last_in_order = by.is_last_in_order(order);
    let progress = if was_paused || !order.gave_way {
        let (cascades, walk) = match was_paused {
            // However far a clock that can be paused has jumped, that is one turn.
            true => (usize::MAX, Walk::Front),
            // Walked from both ends, two misses of the cache overlap. What this turn leaves is the middle of a slot, so none
            // may go on in order after it. `wakers` keeps the order within this turn.
            false if is_last_in_order => (budget * CASCADES_PER_TIMER, Walk::FrontAndBack),
            false => (budget * CASCADES_PER_TIMER, Walk::Front),
        };
        let in_order = |met: Met, key, filed, waker: &mut _| judge.judge(met, key, filed, waker);
        wheel.advance_slot_by_slot(until, budget, cascades, walk, in_order, |_, _| ())
    } else {
        // To `wakers` all come from the front: the fair walk has an order of its own, which is kept.
        let met = Met {
            hand: until,
            at_back: false,
        };
        let fair = |key, filed, waker: &mut _| judge.judge(met, key, filed, waker);
        wheel.advance(until, budget, fair, |_, _| ())
    };
    by.note(order, progress.backlog, is_last_in_order);
    // Raised with the lock held, so that a future that arms meanwhile lowers it afterwards.
    let next = wheel.quiet_until();
    shard.set_next(&mut locked, next);
    shard.unlock(locked);
    progress.backlog
}

/// Reads what the next batches will read. Returns the last tick of what it has read.
///
/// Not inlined: in `serve_batch` it takes registers that the walk needs, 10 instructions a timer.
#[inline(never)]
fn read_ahead(shard: &Shard, wheel: &Wheel<Option<Waker>>, until: Tick) -> Tick {
    wheel.read_ahead(until, AHEAD, |index, deadline| {
        black_box(deadline);
        shard.postponed.read_ahead(index);
    })
}

/// Decides on each timer that comes up in a turn.
struct Judge<'a> {
    shard: &'a Shard,
    /// The current time.
    nanos: u128,
    fired: &'a mut u64,
    lateness: &'a mut Lateness,
    /// The last deadline, and how late it was.
    last: (Tick, u64),
    wakers: &'a mut Wakers,
}

impl Judge<'_> {
    /// Always inlined, into each of the two walks: as a call it is made for each timer.
    #[inline(always)]
    fn judge(&mut self, met: Met, key: Key, filed: Tick, waker: &mut Option<Waker>) -> Verdict {
        let disarmed = self
            .shard
            .postponed
            .disarm_due(key.index(), filed, met.hand);
        let deadline = match disarmed {
            Ok(deadline) => deadline,
            Err(later) => return Verdict::Postpone(later),
        };
        *self.fired += 1;
        // Most come up with others of their tick.
        if deadline != self.last.0 {
            let late = self.shard.clock().nanos_since(self.nanos, deadline);
            self.last = (deadline, late);
        }
        self.lateness.add_one(self.last.1);
        if let Some(waker) = waker.take() {
            self.wakers.push(met, waker);
        }
        Verdict::Disarm
    }
}

// How many timers a turn serves of each shard.

/// The number of timers served with a shard's lock held. A turn serves this many of a shard before it gives way to the tasks that it
/// woke, unless it came late or is the first.
///
/// In a model a few timers are a backlog.
pub(super) const BATCH: usize = if cfg!(waterwheel_loom) { 2 } else { 128 };

/// How many timers of a shard the first turn after a sleep serves, in order. So what is due in a millisecond on a busy service
/// is served in one turn. In turns of 128, an idle worker would be woken for each turn, and sleep again before the next.
pub(super) const FIRST_TURN: usize = if cfg!(waterwheel_loom) { 2 } else { 1024 };

/// A turn that had to wait for a worker serves one timer more for each time this has passed.
///
/// The driver waits behind all tasks that can run. Where those are many, a turn of fixed size would be all that fires in the
/// time that they take, and a busy service's timers would fall further and further behind. It is long enough that a herd of
/// small tasks, each of which runs in less, does not make the next turn larger.
const WAIT_PER_TIMER: Duration = Duration::from_micros(4);

/// After a longer wait the workers are behind, and the driver keeps all shards. (With 4 ms, a herd of a million reaches it, and the gap
/// of a concurrent heartbeat is 9 to 13 ms instead of 8 to 9.)
pub(super) const LONG_WAIT: Duration = Duration::from_millis(20);

/// The maximum, however long the turn had to wait.
const LARGEST: usize = 65_536;

/// Since when a turn should have come.
#[derive(Debug, Clone, Copy)]
pub(super) enum Waiting {
    /// The next turn comes at once.
    Never,
    /// The driver gave way to the tasks that it had woken, and left timers that are due, or found that one came in.
    SinceWayWasGiven(Instant),
    /// The driver slept until then. [`Tick::MAX`] if it slept without end, or if the tick is not known.
    SinceTarget(Tick),
}

/// The limits of a turn of one shard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    /// The maximum number of timers.
    pub(super) timers: usize,
    /// Whether it is the first turn after a sleep.
    pub(super) is_first: bool,
    /// Whether the turn had to wait for long.
    pub(super) is_late: bool,
}

impl Waiting {
    /// The limits of a turn that begins at `now`, which is in `tick`.
    pub(super) fn allowance(self, clock: &Clock, now: Instant, tick: Tick) -> Allowance {
        let (least, waited) = match self {
            Waiting::Never => (BATCH, Duration::ZERO),
            Waiting::SinceWayWasGiven(since) => (BATCH, now.duration_since(since)),
            Waiting::SinceTarget(target) => (FIRST_TURN, clock.duration_between(target, tick)),
        };
        let timers = (waited.as_micros() / WAIT_PER_TIMER.as_micros()) as usize;
        Allowance {
            timers: timers.clamp(least, LARGEST),
            is_first: matches!(self, Waiting::SinceTarget(_)),
            is_late: waited > LONG_WAIT,
        }
    }
}

// The wakers that a turn has collected. They are woken in order after each batch, once no lock is held. Those from the back of a
// slot wait until the slot is done, over several batches if need be.

/// Collects wakers as a shard's wheel serves its timers slot by slot.
///
/// A slot is walked from both its ends at once. What comes from the back comes in reverse order, so it is
/// kept apart, and woken reversed once the slot is done.
#[derive(Default)]
pub(super) struct Wakers {
    ready: Vec<Waker>,
    /// The wakers of one slot, last filed first.
    back: Vec<Waker>,
    /// The hand at that slot.
    slot: Tick,
}

impl Wakers {
    pub(super) fn new() -> Wakers {
        Wakers {
            ready: Vec::with_capacity(BATCH),
            back: Vec::with_capacity(BATCH),
            slot: Tick::ZERO,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, met: Met, waker: Waker) {
        if met.hand != self.slot {
            self.slot = met.hand;
            self.end_slot();
        }
        if met.at_back {
            self.back.push(waker);
        } else {
            self.ready.push(waker);
        }
    }

    /// Wakes what is next in order, with no lock held.
    pub(super) fn wake(&mut self) {
        wake_all(self.ready.drain(..));
    }

    /// Wakes all that is left: the turn is over.
    pub(super) fn finish(&mut self) {
        if !self.back.is_empty() {
            self.end_slot();
        }
        if !self.ready.is_empty() {
            self.wake();
        }
        if self.ready.capacity() > BATCH {
            self.ready.shrink_to(BATCH);
        }
        if self.back.capacity() > BATCH {
            self.back.shrink_to(BATCH);
        }
    }

    #[inline]
    fn end_slot(&mut self) {
        if self.back.is_empty() {
            // As ever on a clock that is paused, whose slots are walked from the front.
            return;
        }
        self.ready.extend(self.back.drain(..).rev());
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;
    use std::future::Future;
    use std::pin::pin;

    use std::sync::{Arc, Mutex};
    use std::task::{Context, Wake, Waker};

    use tokio::runtime::Runtime;
    use tokio::time::{Duration, Instant};

    use super::{Allowance, BATCH, IN_ORDER, MANY, Turned, catch_up, turn};
    use crate::driver::Timer;
    use crate::driver::turn::one_shard::FIRST_TURN;
    use crate::driver::turn::one_shard::Wakers;
    use crate::tests::{Wakes, one_worker};
    use crate::time::Sleep;
    use crate::wheel::Tick;

    /// The timers that are due before all that arrive.
    const HERD: usize = 20_000;
    /// The timers that come due in each step, in which a turn serves a batch.
    const ARRIVALS: usize = 500;
    const STEPS: usize = 40;

    const AFTER_SLEEP: Allowance = Allowance {
        timers: FIRST_TURN,
        is_first: true,
        is_late: false,
    };

    fn a_batch(is_first: bool) -> Allowance {
        Allowance {
            timers: BATCH,
            is_first,
            is_late: false,
        }
    }

    /// Timers due at one tick, and how many of them have been woken.
    struct Group {
        woken: Arc<Wakes>,
        _sleeps: Box<dyn Any>,
    }

    impl Group {
        fn arm(timer: &Timer, count: usize, deadline: Instant) -> Group {
            let (woken, waker) = Wakes::new();
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
            self.woken.count()
        }
    }

    fn on_a_running_clock() -> (Runtime, Timer) {
        let runtime = one_worker();
        let timer = Timer::builder().resolution(Duration::from_millis(1));
        let timer = timer.start_on(runtime.handle()).unwrap();
        (runtime, timer)
    }

    // `tests/wheel/fairness` tests the wheel alone. The clock runs here; on a paused one, turns serve in order. The turns get a
    // time that the driver itself does not reach.
    #[test]
    fn under_overload_neither_the_oldest_nor_the_freshest_starve() {
        let (_runtime, timer) = on_a_running_clock();
        let shard = Arc::clone(timer.shard());
        // In the middle of a second of the wheel's.
        let due = shard.clock().instant_of(Tick::new(3_600_500)).unwrap();
        let mut wakers = Wakers::default();
        let mut turn_at = |now: Instant| {
            let tick = shard.clock().tick_before(now);
            let allowance = a_batch(true);
            let turned = turn(&shard, now, tick, allowance, &mut wakers);
            assert_ne!(turned, Turned::LeftOut);
        };
        let herd = Group::arm(&timer, HERD, due);
        // All of it is to lie on the first dial when it comes due.
        let before = due - Duration::from_millis(100);
        while shard.next() <= shard.clock().tick_before(before) {
            turn_at(before);
        }
        turn_at(due);
        assert_eq!(herd.woken(), BATCH);

        let mut arrived: Vec<Group> = Vec::new();
        let all_woken = |arrived: &[Group]| arrived.iter().map(Group::woken).sum::<usize>();
        for step in 0..STEPS {
            let now = due + Duration::from_millis(step as u64 + 1);
            arrived.push(Group::arm(&timer, ARRIVALS, now));
            let before = (herd.woken(), all_woken(&arrived));
            turn_at(now);
            let old = herd.woken() - before.0;
            assert!(old > 0, "none of the oldest in step {step}");
            let freshest = arrived[step].woken();
            assert!(freshest > 0, "none of the freshest in step {step}");
            assert_eq!(old + all_woken(&arrived) - before.1, BATCH);
        }
        let (old, new) = (herd.woken() - BATCH, all_woken(&arrived));
        assert!(
            old >= new / 2 && new >= old / 2,
            "{old} of the herd and {new} that came after it"
        );

        // The timers that were left over are neither lost nor woken twice.
        let end = due + Duration::from_secs(1);
        while timer.metrics().pending() > 0 {
            turn_at(end);
        }
        assert_eq!(herd.woken(), HERD);
        assert!(arrived.iter().all(|group| group.woken() == ARRIVALS));
    }

    /// Notes which of many timers was woken.
    struct Noted {
        number: u64,
        order: Arc<Mutex<Vec<u64>>>,
    }

    impl Wake for Noted {
        fn wake(self: Arc<Self>) {
            self.order.lock().unwrap().push(self.number);
        }
    }

    /// Arms a timer for each of these ticks, numbered from 0. Returns the numbers of those that have been woken, as they were.
    fn arm_noted(timer: &Timer, ticks: &[u64]) -> (Arc<Mutex<Vec<u64>>>, Vec<Sleep>) {
        let order = Arc::default();
        let sleeps = (0..).zip(ticks).map(|(number, &tick)| {
            let deadline = timer.shard().clock().instant_of(Tick::new(tick));
            let mut sleep = timer.sleep_until(deadline.unwrap());
            let order = Arc::clone(&order);
            let waker = Waker::from(Arc::new(Noted { number, order }));
            let mut context = Context::from_waker(&waker);
            assert!(pin!(&mut sleep).poll(&mut context).is_pending());
            sleep
        });
        let sleeps = sleeps.collect();
        (order, sleeps)
    }

    // As on a server whose worker was blocked. The clock runs, so each slot is walked from both ends.
    #[test]
    fn a_turn_after_a_stall_wakes_in_order_across_slots() {
        let (_runtime, timer) = on_a_running_clock();
        let shard = timer.shard();
        // Some ticks with few timers and one with more than a batch, all passed at once, by a time that the driver does not reach.
        let tick_of = |number: u64| 3_600_000 + number % 10 * (number % 7) * 11;
        let ticks = Vec::from_iter((0..1_000).map(tick_of));
        let (order, _sleeps) = arm_noted(&timer, &ticks);
        let end = Tick::new(3_605_000);
        let now = shard.clock().instant_of(end).unwrap();
        let turned = turn(shard, now, end, AFTER_SLEEP, &mut Wakers::default());
        assert_eq!(turned, Turned::All);
        let mut expected = Vec::from_iter(0..1_000);
        expected.sort_by_key(|&number| tick_of(number));
        assert_eq!(*order.lock().unwrap(), expected);
    }

    // The timers that a catch-up leaves are served in order, so it must not take from both ends.
    #[test]
    fn a_catch_up_wakes_in_order_and_so_does_the_turn_after_it() {
        let (_runtime, timer) = on_a_running_clock();
        let shard = timer.shard();
        let count = 3 * BATCH + 40;
        let (order, _sleeps) = arm_noted(&timer, &vec![3_600_500; count]);
        let end = Tick::new(3_600_600);
        let now = shard.clock().instant_of(end).unwrap();
        catch_up(shard, now);
        assert_eq!(order.lock().unwrap().len(), BATCH);
        catch_up(shard, now);
        turn(shard, now, end, AFTER_SLEEP, &mut Wakers::default());
        assert_eq!(*order.lock().unwrap(), Vec::from_iter(0..count as u64));
    }

    // No turn comes after a sleep here: as in a driver that is awake when a herd comes due.
    #[test]
    fn turns_without_a_sleep_are_fair_after_a_thousand_timers() {
        let (_runtime, timer) = on_a_running_clock();
        let shard = timer.shard();
        let instant_of = |tick| shard.clock().instant_of(tick).unwrap();
        let mut wakers = Wakers::default();
        let mut turn_at = |tick: Tick| {
            let allowance = a_batch(false);
            turn(shard, instant_of(tick), tick, allowance, &mut wakers);
        };
        // In the middle of a second of the wheel's: all of it is to lie on the first dial when it comes due.
        let [before, due, after] = [3_600_400, 3_600_500, 3_600_501].map(Tick::new);
        let herd = Group::arm(&timer, 3 * IN_ORDER, instant_of(due));
        while shard.next() <= before {
            turn_at(before);
        }
        let fresh = Group::arm(&timer, BATCH, instant_of(after));
        for _ in 0..IN_ORDER / BATCH {
            turn_at(after);
        }
        assert_eq!((herd.woken(), fresh.woken()), (IN_ORDER, 0));
        turn_at(after);
        let [herd, fresh] = [herd.woken() - IN_ORDER, fresh.woken()];
        assert!(herd > 0 && fresh > 0, "{herd} of the herd, {fresh} fresh");
    }

    #[test]
    fn many_timers_are_read_ahead_sixteen_slots_at_a_time() {
        let runtime = one_worker();
        for (timers, is_read) in [(MANY - 1, false), (MANY + 2 * BATCH, true)] {
            let timer = Timer::builder().resolution(Duration::from_millis(1));
            let timer = timer.start_on(runtime.handle()).unwrap();
            let shard = Arc::clone(timer.shard());
            let mut wakers = Wakers::default();
            let due = |tick| shard.clock().instant_of(Tick::new(tick)).unwrap();
            let mut turn_at = |tick| {
                let allowance = a_batch(false);
                let now = due(tick);
                let turned = turn(&shard, now, Tick::new(tick), allowance, &mut wakers);
                assert_ne!(turned, Turned::LeftOut);
                shard.lock().read_until
            };
            // In the middle of a second of the wheel's, so that all lie on the first dial.
            let hand = 3_600_400;
            let far = Group::arm(&timer, timers - 640, due(hand + 100));
            let near: Vec<_> = (1..=40)
                .map(|tick| Group::arm(&timer, 16, due(hand + tick)))
                .collect();
            while shard.next() <= Tick::new(hand) {
                turn_at(hand);
            }
            // Each turn serves 8 slots, and moves the hand to the next.
            let read: Vec<u64> = (0..3).map(|_| turn_at(hand + 40).get()).collect();
            match is_read {
                true => assert_eq!(read, [hand + 16, hand + 16, hand + 17 + 16]),
                false => assert_eq!(read, [0, 0, 0]),
            }
            assert_eq!(near.iter().map(Group::woken).sum::<usize>(), 3 * BATCH);
            assert_eq!(far.woken(), 0);
        }
    }
}
