//! A shard: one wheel of wakers behind one lock, on cache lines of its own.
//!
//! | file | concept |
//! |---|---|
//! | this one | [`Shard`], its lock, and `next`, the tick of its next turn |
//! | `list` | the shards of a `Timer`: by the thread's number for its handles, and in a list for its driver |
//! | `futures` | what a future does with its timer: arm, poll, reset, cancel |
//! | `postponed` | deadlines outside of the slab, which a future moves without the lock |
//! | `whole` | what a `Timer` does with a whole shard: stop, drain, count |
//!
//! # The life of a timer
//!
//! ```text
//!            arm                     turn                          finish
//! (future) ───────► entry, pending ───────► entry, disarmed ──────────────► (gone)
//!                      │      ▲    wakes it      │        poll: its tick has come
//!               cancel │      └──────────────────┘ poll: was postponed meanwhile
//!                      ▼
//!                   (gone)
//! ```
//!
//! The future may free the entry in either state, by a poll that finds it due or by its drop. A future that moves its deadline
//! to the past, and an interval that is due, disarm the entry themselves.
//!
//! The entry belongs to the future that armed it. A turn takes the entry's waker and disarms it, but only the future frees
//! the entry (or a stop, after which no timer is armed). So while the future lives, no other timer gets the entry's place in
//! the slab, nor the cell that belongs to it, which the future writes without the lock.
//!
//! # Ground rules
//!
//! - Wakers are cloned, woken and dropped with no lock held: their code is not ours.
//! - When the lock is free, `next` is not later than the wheel's next expiration. A future lowers `next` before it reads the
//!   driver's target, and the driver does the reverse; `wakeup` has the proof that no wake-up is lost.

use std::sync::Arc;
use std::task::Waker;

use list::Siblings;
use postponed::Postponed;

use super::lifecycle::{Lifecycle, Permits};
use super::metrics::Lateness;
use super::wakeup::Wakeup;
use crate::clock::Clock;
use crate::driver::snapshot::Look;
use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, OwnLine};
use crate::wheel::{SlotCounts, Tick, Wheel};

mod futures;
mod list;
mod postponed;
mod whole;

pub(crate) use futures::Answer;
#[cfg(waterwheel_loom)]
pub(super) use list::set_thread_number;
pub(super) use list::{ShardList, Shards};

pub(crate) struct Shard {
    locked: OwnLine<Mutex<Locked>>,
    /// When the driver must turn this shard next. Written with the lock held, by [`set_next`](Shard::set_next).
    next: OwnLine<AtomicU64>,
    pub(super) turning: OwnLine<Turning>,
    pub(super) postponed: Postponed,
    /// The timer's, kept here so that a future need not follow another reference.
    clock: Clock,
    common: Common,
    siblings: Siblings,
    position: usize,
}

/// The state that all shards and handles of a `Timer` share.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) lifecycle: Arc<Lifecycle>,
    pub(super) wakeup: Arc<Wakeup>,
    pub(super) list: Arc<ShardList>,
    pub(super) permits: Option<Arc<Permits>>,
}

/// The state behind a shard's lock: the wheel, and counters that agree with it.
pub(super) struct Locked {
    /// `None` once the timer is stopped.
    pub(super) wheel: Option<Wheel<Option<Waker>>>,
    /// The value of the atomic `next`: the lock's holder need not read a line that the driver reads.
    pub(super) next: Tick,
    pub(super) is_draining: bool,
    pub(super) order: Order,
    /// The turns have read the entries ahead of what is due by this tick.
    pub(super) read_until: Tick,
    /// A catch-up task was spawned and has not ended.
    pub(super) has_catch_up: bool,
    pub(super) armed: u64,
    pub(super) fired: u64,
    pub(super) cancelled: u64,
    pub(super) stopped: u64,
    pub(super) cascaded: u64,
    pub(super) lateness: Lateness,
}

/// How far the turns of a shard have served in order, since the shard last had no backlog.
#[derive(Default)]
pub(super) struct Order {
    /// The sum of what their batches were allowed to serve.
    pub(super) served: usize,
    /// They have served enough: the turns are fair until there is no backlog.
    pub(super) gave_way: bool,
}

impl Shard {
    /// A new shard, on the list. If the `Timer` drains, so does the shard; if it is stopped or over, the shard is stopped.
    fn add(common: &Common, siblings: Siblings, position: usize) -> Arc<Shard> {
        let clock = common.wakeup.clock().clone();
        let shard = Arc::new(Shard {
            locked: OwnLine(Mutex::new(Locked {
                wheel: Some(Wheel::starting_at(clock.resolution(), clock.now_tick())),
                next: Tick::MAX,
                is_draining: false,
                order: Order::default(),
                read_until: Tick::ZERO,
                has_catch_up: false,
                armed: 0,
                fired: 0,
                cancelled: 0,
                stopped: 0,
                cascaded: 0,
                lateness: Lateness::default(),
            })),
            next: OwnLine(AtomicU64::new(Tick::MAX.get())),
            turning: OwnLine(Turning::new()),
            postponed: Postponed::new(),
            clock,
            common: common.clone(),
            siblings,
            position,
        });
        common.list.add(&shard);
        // A thread that moves the state lists the shards afterwards. So this shard is on its list, or the new state is seen
        // here: both take the list's lock in between.
        if common.lifecycle.is_stopped_or_over() {
            drop(shard.stop());
        } else if common.lifecycle.is_draining() {
            shard.start_draining();
        }
        shard
    }

    pub(crate) fn lifecycle(&self) -> &Lifecycle {
        &self.common.lifecycle
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn wakeup(&self) -> &Wakeup {
        &self.common.wakeup
    }

    pub(crate) fn permits(&self) -> Option<&Permits> {
        self.common.permits.as_deref()
    }

    /// The shard of the thread that asks, if it is another one and the `Timer` still has a handle.
    #[inline]
    pub(crate) fn other_of_this_thread(&self) -> Option<Arc<Shard>> {
        if self.position == self.siblings.position_of(list::thread_number()) {
            return None;
        }
        Some(Arc::clone(
            self.siblings.shards()?.of_this_thread(&self.common),
        ))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Locked> {
        self.locked.lock()
    }

    /// When the driver must turn this shard next.
    pub(super) fn next(&self) -> Tick {
        // b. of the proof in `wakeup`.
        Tick::new(self.next.load(Ordering::SeqCst))
    }

    /// The one place where `next` is written.
    pub(super) fn set_next(&self, locked: &mut Locked, next: Tick) {
        locked.next = next;
        // 1. of the proof in `wakeup`, if a future lowers it. A turn raises it to what the wheel says, with the lock held.
        self.next.store(next.get(), Ordering::SeqCst);
    }

    /// Unlocks after a timer was filed, and requests a turn if this shard needs one earlier than `next` said.
    #[inline]
    fn unlock_with_one_more(&self, locked: MutexGuard<'_, Locked>) {
        let next = match &locked.wheel {
            Some(wheel) => wheel.quiet_until(),
            None => Tick::MAX,
        };
        if next < locked.next {
            self.unlock_with_earlier_next(locked, next);
        }
    }

    #[cold]
    fn unlock_with_earlier_next(&self, mut locked: MutexGuard<'_, Locked>, next: Tick) {
        self.set_next(&mut locked, next);
        drop(locked);
        self.common.wakeup.request(next);
    }

    /// Unlocks after a timer has left the dials other than by a turn.
    ///
    /// If it was the last one, a paused clock would still jump to what the driver sleeps towards. The driver may have gone to
    /// sleep before the clock was paused, so this looks at the clock itself.
    #[inline]
    fn unlock_with_one_less(&self, locked: MutexGuard<'_, Locked>) {
        let is_empty = locked.wheel.as_ref().is_none_or(Wheel::is_empty);
        if is_empty && self.clock.is_pausable() && locked.next < Tick::MAX {
            return self.unlock_emptied(locked);
        }
        self.unlock(locked);
    }

    #[cold]
    fn unlock_emptied(&self, locked: MutexGuard<'_, Locked>) {
        // Unlocked for the look at the clock, which may enter a runtime. So the shard is looked at again.
        self.unlock(locked);
        if !self.clock.may_stand_still() {
            return;
        }
        let mut locked = self.lock();
        let is_empty = locked.wheel.as_ref().is_some_and(Wheel::is_empty);
        if is_empty && locked.next < Tick::MAX {
            self.set_next(&mut locked, Tick::MAX);
            // First: a wake may poll the driver, or run foreign code.
            drop(locked);
            self.common.wakeup.wake();
        }
    }

    /// Unlocks, and wakes the futures that wait for a drain if nothing is pending here any more.
    #[inline]
    pub(super) fn unlock(&self, locked: MutexGuard<'_, Locked>) {
        if locked.is_draining {
            return self.unlock_draining(locked);
        }
        drop(locked);
    }

    #[cold]
    fn unlock_draining(&self, locked: MutexGuard<'_, Locked>) {
        let is_drained = locked.wheel.as_ref().is_none_or(Wheel::is_empty);
        drop(locked);
        if is_drained {
            self.common.lifecycle.wake_drains();
        }
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        // Its own count is zero already. It may have been the last shard of a `Timer` without handles. Only then is the driver's task woken: woken by a worker
        // that then blocks, it would be held up.
        if self.common.list.is_over() {
            self.common.wakeup.wake_task();
        }
    }
}

// Which thread turns a shard: one at a time, and not always the driver.
//
// A turn wakes the wakers after it has given the lock back. Two turns at once would mix their order.

/// Whether a thread turns the shard (the driver's, one that advances tokio's clock, or one that runs a catch-up task), and whether the driver has given the
/// shard to a catch-up task.
pub(in crate::driver) struct Turning(AtomicU8);

/// No thread turns it, and the driver has not given it away.
const FREE: u8 = 0;
/// A thread turns it.
const TURNS: u8 = 1;
/// A catch-up task turns it batch by batch, until it has no backlog.
const GIVEN: u8 = 2;
/// The driver has left the shard to that thread or task. The last of the two to end wakes the driver.
const LEFT: u8 = 4;

impl Turning {
    fn new() -> Turning {
        Turning(AtomicU8::new(FREE))
    }

    /// Begins a turn of the driver. `false` if another thread turns the shard or it is given away; the driver is then woken
    /// afterwards.
    pub(in crate::driver) fn begin(&self) -> bool {
        let begin = |turning| match turning {
            FREE => TURNS,
            _ => turning | LEFT,
        };
        self.change(|turning| Some(begin(turning))) == Ok(FREE)
    }

    /// Begins a turn of a catch-up task, unless another thread turns the shard.
    pub(in crate::driver) fn begin_if_free(&self) -> bool {
        let begin = |turning| (turning & TURNS == 0).then_some(turning | TURNS);
        self.change(begin).is_ok()
    }

    /// Ends a turn. `true` if the driver has left the shard to it, and must be woken.
    #[must_use]
    pub(in crate::driver) fn end(&self) -> bool {
        self.end_one_of(TURNS, GIVEN)
    }

    /// The driver leaves the shard to a catch-up task that it is about to spawn. It has just turned the shard, so no other such task
    /// has it.
    pub(in crate::driver) fn give(&self) {
        // If another thread turns the shard meanwhile, `TURNS` stays.
        let _ = self.change(|turning| Some(turning | GIVEN | LEFT));
    }

    /// Notes that this task has ended. Returns `true` if the driver must be woken.
    #[must_use]
    pub(in crate::driver) fn give_back(&self) -> bool {
        self.end_one_of(GIVEN, TURNS)
    }

    /// Whether the driver must be woken: it has left the shard, and the other of the two has ended as well.
    fn end_one_of(&self, this: u8, other: u8) -> bool {
        let end = |turning| match turning & other {
            0 => FREE,
            _ => turning & !this,
        };
        self.change(|turning| Some(end(turning))) == Ok(this | LEFT)
    }

    /// Acquire pairs with the release of each change before: a turn follows what the last one did without the lock, and an end
    /// sees the `LEFT` of the driver. The latter also needs the release: the driver does not read `next` of a shard that it leaves,
    /// and reads it when it is woken.
    fn change(&self, change: impl FnMut(u8) -> Option<u8>) -> Result<u8, u8> {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, change)
    }
}

// The state that a shard shows, without delaying the threads that use it.

/// The number of places of the slab read with the lock held. That takes some 4 µs, and 6 at most if the thread is not interrupted.
const PORTION: usize = 1024;

impl Shard {
    /// The shard's number, where its wheel stands, and how many timers there are for each slot, as seen from `now`. `None` if it is stopped.
    fn look(&self, now: Tick) -> Option<(usize, Look)> {
        let locked = self.lock();
        let wheel = locked.wheel.as_ref()?;
        let standing = wheel.standing();
        let (pending, next) = (wheel.len(), wheel.next_expiration());
        drop(locked);
        let look = Look {
            pending,
            next_expiration: next.and_then(|tick| self.clock.instant_of(tick)),
            standing,
            counts: self.count_from(now),
        };
        Some((self.position, look))
    }

    fn count_from(&self, now: Tick) -> SlotCounts {
        let mut counts = SlotCounts::at(self.clock.resolution(), now);
        let mut deadlines = Vec::with_capacity(PORTION);
        let mut place = Some(0);
        while let Some(first) = place {
            let locked = self.lock();
            // The shard may have been stopped meanwhile.
            let Some(wheel) = &locked.wheel else {
                break;
            };
            place = wheel.read_deadlines(first, PORTION, |index, filed| {
                deadlines.push(self.postponed.deadline(index, filed));
            });
            drop(locked);
            // Counted without the lock, so that a thread that waits for it gets it now.
            for deadline in deadlines.drain(..) {
                counts.add(deadline);
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::Future;
    use std::mem::offset_of;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::sync::{Arc, mpsc};
    use std::task::{Context, Wake, Waker};
    use std::thread;

    use tokio::runtime::Runtime;
    use tokio::time::Duration;

    use super::futures::KEPT;
    use super::{Answer, Shard};
    use crate::driver::Timer;
    use crate::tests::one_worker;
    use crate::wheel::{Tick, Verdict};

    impl Answer<()> {
        fn is_due(&self) -> bool {
            matches!(self, Answer::Due)
        }
    }

    /// Processors fetch lines of 64 bytes in pairs.
    const LINES: usize = 128;

    #[test]
    fn the_lock_and_next_are_on_lines_of_their_own() {
        let lines = [
            offset_of!(Shard, locked),
            offset_of!(Shard, next),
            offset_of!(Shard, postponed),
            offset_of!(Shard, clock),
        ]
        .map(|offset| offset / LINES);
        assert_ne!(lines[0], lines[1]);
        assert!(!lines[2..].contains(&lines[0]) && !lines[2..].contains(&lines[1]));
        // So whatever else is on the heap, another shard's lines among it, is on others.
        assert_eq!(align_of::<Shard>() % LINES, 0);
        assert_eq!(size_of::<Shard>() % LINES, 0);
    }

    #[test]
    fn arm_and_cancel_count_no_reference_of_other_shards() {
        let runtime = one_worker();
        // The driver counts references as well while it turns: it is kept from its only worker.
        let (entered, wait) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        runtime.spawn(async move {
            let _ = entered.send(());
            let _ = released.recv();
        });
        wait.recv().expect("the worker is blocked");
        let timer = Timer::builder().start_on(runtime.handle()).unwrap();
        let shard = Arc::clone(timer.shard());
        // The first sleep lists the shard and lowers `next`; only what comes after is the path.
        let first = armed(&timer);
        let counts = || {
            let (common, core) = (&shard.common, &timer.core);
            [
                Arc::strong_count(&common.lifecycle),
                Arc::strong_count(&common.wakeup),
                Arc::weak_count(&common.wakeup),
                Arc::strong_count(&common.list),
                Arc::strong_count(core),
                Arc::weak_count(core),
                shard.next().get() as usize,
            ]
        };
        let before = counts();
        let second = armed(&timer);
        assert_eq!(counts(), before);
        assert_eq!(
            Arc::strong_count(&shard),
            4,
            "this one, the timer, two sleeps"
        );
        drop(second);
        assert_eq!(counts(), before);
        drop(first);
        drop(release);
        drop(runtime);
    }

    // Idle timeouts push their deadline back in this way with each packet.
    #[test]
    fn a_sleep_is_pushed_back_while_the_lock_is_held() {
        let (runtime, timer) = timer();
        let mut sleep = timer.sleep(Duration::from_secs(3600));
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(&mut sleep).poll(&mut context).is_pending());
        let held = timer.shard().lock();
        let (done, wait) = mpsc::channel();
        let pushes = thread::spawn(move || {
            sleep.set_deadline(sleep.deadline() + Duration::from_secs(60));
            let _ = done.send(());
            sleep
        });
        let waited = wait.recv_timeout(Duration::from_secs(20));
        drop(held);
        assert!(waited.is_ok(), "it waited for the lock");
        drop(pushes.join().unwrap());
        drop(runtime);
    }

    #[test]
    fn an_empty_shard_gives_back_the_memory_of_a_peak() {
        let (runtime, timer) = timer();
        let mut peak: Vec<_> = (0..10 * KEPT).map(|_| armed(&timer)).collect();
        assert!(capacity(timer.shard()) >= 10 * KEPT);
        let last = peak.pop();
        drop(peak);
        assert!(capacity(timer.shard()) >= 10 * KEPT);
        drop(last);
        assert_eq!(capacity(timer.shard()), 0);
        let few: Vec<_> = (0..KEPT / 2).map(|_| armed(&timer)).collect();
        drop(few);
        assert!(capacity(timer.shard()) >= KEPT / 2);
        drop(runtime);
    }

    /// A waker whose clones panic as they are dropped, on a thread that says so.
    struct PanicsWhenDropped;

    thread_local! {
        static PANICS: Cell<bool> = const { Cell::new(false) };
    }

    impl Wake for PanicsWhenDropped {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            assert!(!PANICS.get(), "a waker that panics, on purpose");
        }
    }

    // The turn comes between the poll's look at the clock and its look at the shard.
    #[test]
    fn a_waker_that_panics_at_a_late_poll_leaves_the_entry_valid() {
        let (runtime, timer) = timer();
        let shard = Arc::clone(timer.shard());
        let deadline = shard.clock().now() + Duration::from_secs(3600);
        let tick = shard.clock().tick_after(deadline);
        let noop = || Waker::noop().clone();
        let Answer::Pending(key) = shard.arm(tick, Tick::ZERO, noop(), |_| ()) else {
            panic!("it lies ahead");
        };
        let mut locked = shard.lock();
        let wheel = locked.wheel.as_mut().unwrap();
        while wheel.now() < tick {
            let disarm = |_, _, waker: &mut Option<Waker>| {
                *waker = None;
                Verdict::Disarm
            };
            wheel.advance(tick, usize::MAX, disarm, |_, _| ());
        }
        drop(locked);
        let waker = Waker::from(Arc::new(PanicsWhenDropped));
        PANICS.set(true);
        let poll = catch_unwind(AssertUnwindSafe(|| {
            shard.poll_with_new_waker(key, tick, waker).is_due()
        }));
        PANICS.set(false);
        assert!(poll.is_err());
        let again = shard.poll_with_new_waker(key, tick, noop());
        assert!(again.is_due(), "the key still names its own entry");
        shard.finish(key);
        drop(runtime);
    }

    fn timer() -> (Runtime, Timer) {
        let runtime = one_worker();
        let timer = Timer::builder().start_on(runtime.handle()).unwrap();
        (runtime, timer)
    }

    fn armed(timer: &Timer) -> impl Sized + use<> {
        let mut sleep = timer.sleep(Duration::from_secs(3600));
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(&mut sleep).poll(&mut context).is_pending());
        sleep
    }

    fn capacity(shard: &Shard) -> usize {
        shard.lock().wheel.as_ref().unwrap().capacity()
    }
}
