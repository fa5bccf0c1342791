//! A shard: one wheel of wakers behind one lock, on cache lines of its own.
//!
//! # The life of a timer
//!
//! ```text
//!            arm                      turn                        finish
//! (future) ───────► record, pending ───────► record, parked ──────────────► (gone)
//!                      │      ▲    wakes it      │        poll: due by hand
//!               cancel │      └──────────────────┘ poll: was postponed meanwhile
//!                      ▼
//!                   (gone)
//! ```
//!
//! The record belongs to the future that armed it: the driver takes its waker and parks it, but
//! only the future gives it back. So a record's place in the slab, and the cell beside it that
//! the future writes without the lock, are never somebody else's while the future lives.
//!
//! # Ground rules
//!
//! - Wakers are cloned, woken and dropped with no lock held: their code is not ours.
//! - `next` is never later than the wheel's next turn when the lock is free, and it is lowered
//!   before the driver's target is looked at; the driver does it the other way round. So one of
//!   the two sees the other.

mod timers;
mod turn;

pub(crate) use timers::Answer;
pub(super) use turn::{BITE, Share};

use std::sync::{Arc, Weak};
use std::task::Waker;

use super::clock::Clock;
use super::metrics::Lateness;
use super::permits::Permits;
use super::postponed::Postponed;
use super::shared::Shared;
use super::thread;
use super::timer::Core;
use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, OwnLine};
use crate::wheel::{Tick, Wheel};

pub(crate) struct Shard {
    state: OwnLine<Mutex<State>>,
    /// When the driver must look at this shard next.
    next: OwnLine<AtomicU64>,
    /// Whether a thread serves what is due: the driver's, tokio's clock's, or one that helps.
    turning: OwnLine<AtomicU8>,
    postponed: Postponed,
    /// The timer's, within reach of those who have the shard.
    clock: Clock,
    shared: Arc<Shared>,
    core: Weak<Core>,
    slot: usize,
    /// What of a thread's number tells its slot.
    mask: usize,
    permits: Option<Arc<Permits>>,
}

struct State {
    /// `None` once the timer is stopped.
    wheel: Option<Wheel<Option<Waker>>>,
    /// What `next` holds, to be compared with the lock held.
    published: Tick,
    draining: bool,
    /// How many timers turns have served in order, and left a backlog.
    in_order: usize,
    /// They have served enough: the turns are fair until there is no backlog.
    gave_way: bool,
    /// A [`Help`](super::help::Help) is on its way.
    has_help: bool,
    armed: u64,
    fired: u64,
    cancelled: u64,
    stopped: u64,
    cascaded: u64,
    lateness: Lateness,
}

impl Shard {
    pub(in crate::driver) fn new(
        shared: &Arc<Shared>,
        core: Weak<Core>,
        slot: usize,
        mask: usize,
        permits: Option<Arc<Permits>>,
    ) -> Shard {
        let clock = shared.clock().clone();
        Shard {
            state: OwnLine(Mutex::new(State {
                wheel: Some(Wheel::starting_at(clock.resolution(), clock.now_tick())),
                published: Tick::MAX,
                draining: false,
                in_order: 0,
                gave_way: false,
                has_help: false,
                armed: 0,
                fired: 0,
                cancelled: 0,
                stopped: 0,
                cascaded: 0,
                lateness: Lateness::default(),
            })),
            next: OwnLine(AtomicU64::new(Tick::MAX.get())),
            turning: OwnLine(AtomicU8::new(turn::NO)),
            postponed: Postponed::new(),
            clock,
            shared: Arc::clone(shared),
            core,
            slot,
            mask,
            permits,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn permits(&self) -> Option<&Permits> {
        self.permits.as_deref()
    }

    /// The shard of the thread that asks, if it is another one and the timer still has a handle.
    #[inline]
    pub(crate) fn of_this_thread(&self) -> Option<Arc<Shard>> {
        if self.slot == thread::number() & self.mask {
            return None;
        }
        Some(Arc::clone(self.core.upgrade()?.shard()))
    }

    /// When the driver must look at this shard next.
    pub(in crate::driver) fn next(&self) -> Tick {
        Tick::new(self.next.load(Ordering::SeqCst))
    }

    /// Unlocks, and tells the driver if it must come earlier than it thinks.
    #[inline]
    fn publish(&self, state: MutexGuard<'_, State>) {
        let next = match &state.wheel {
            Some(wheel) => wheel.quiet_until(),
            None => Tick::MAX,
        };
        if next < state.published {
            self.lower(state, next);
        }
    }

    #[cold]
    fn lower(&self, mut state: MutexGuard<'_, State>, next: Tick) {
        state.published = next;
        self.next.store(next.get(), Ordering::SeqCst);
        drop(state);
        self.shared.heed(next);
    }

    /// Unlocks, and tells those that wait for the timer to be drained if this shard is.
    #[inline]
    fn unlock(&self, state: MutexGuard<'_, State>) {
        if state.draining {
            return self.unlock_draining(state);
        }
        drop(state);
    }

    #[cold]
    fn unlock_draining(&self, state: MutexGuard<'_, State>) {
        let drained = state.wheel.as_ref().is_none_or(Wheel::is_empty);
        drop(state);
        if drained {
            self.shared.wake_drains();
        }
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        // It may have been all that the driver of a timer without handles waited for.
        self.shared.end_if_over();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::mem::offset_of;
    use std::pin::pin;
    use std::sync::{Arc, mpsc};
    use std::task::{Context, Waker};
    use std::thread;

    use tokio::runtime::{Builder, Runtime};
    use tokio::time::Duration;

    use super::Shard;
    use super::timers::KEPT;
    use crate::driver::Timer;

    /// Processors fetch lines of 64 bytes in pairs.
    const LINES: usize = 128;

    #[test]
    fn the_lock_and_the_published_turn_are_on_lines_of_their_own() {
        let lines = [
            offset_of!(Shard, state),
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
    fn to_arm_and_cancel_counts_no_reference_that_another_shard_counts() {
        let runtime = runtime();
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
        // The first sleep lists the shard and publishes its turn; only what comes after is the path.
        let first = armed(&timer);
        let counts = || {
            let shared = shard.shared();
            let core = &timer.core;
            [
                Arc::strong_count(shared),
                Arc::weak_count(shared),
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

    // What idle deadlines are pushed back with, at each packet.
    #[test]
    fn a_sleep_is_pushed_back_though_somebody_holds_the_lock() {
        let (runtime, timer) = timer();
        let mut sleep = timer.sleep(Duration::from_secs(3600));
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(&mut sleep).poll(&mut context).is_pending());
        let held = timer.shard().state.lock();
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
    fn a_shard_that_has_nothing_to_do_gives_back_the_memory_of_a_peak() {
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

    fn runtime() -> Runtime {
        Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .unwrap()
    }

    fn timer() -> (Runtime, Timer) {
        let runtime = runtime();
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
        shard.state.lock().wheel.as_ref().unwrap().capacity()
    }
}
