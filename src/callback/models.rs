//! Callbacks under loom: a submission, a cancel, a stop and a drain on one thread, while the clock is advanced and the task runs on
//! another, in every order.
//!
//! Broken by hand, each seen to fail:
//!
//! | broken | seen by |
//! |---|---|
//! | `Head::try_end`: a load and a store | a cancel and a run; two cancels |
//! | `Call::wake` hands over what is not armed yet | a submission during the stop |
//! | `Call::arm` does not look whether it was woken | a submission as it comes due, and during the stop |
//! | `Call::arm` takes what was stopped meanwhile | a submission during the stop |
//! | `Runner::is_cut_short`: no look at the state | the stops |
//! | `Runner::next`: unlocked between the look at the queue and the flag of the task | a callback that comes due as the task ends |
//! | `Runner::collect` ends for all that collect | two that stop a timer |
//! | `Drain`: no look at callbacks; `Lifecycle::end_callback` wakes no drain | both drains |
//! | `Lifecycle::begin_callback`: `Relaxed` and `Acquire` for `SeqCst` | a callback that is taken as a drain begins |
//!
//! Not seen: `begin_callback` without its look at the state, since `Core::admit` looks again, and `sync::atomic` fences the count on
//! both sides.

use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread::JoinHandle;
use tokio::time::Duration;

use super::{TimeoutHandle, Unrun};
use crate::clock::ManualClock;
use crate::driver::Timer;
use crate::driver::models::host::{run_tasks, spawn_thread};
use crate::driver::models::world::{Run, Task, explore, start_by_hand};

const DELAY: Duration = Duration::from_millis(5);

/// A timer on a clock, and how often its callback has run.
struct World {
    clock: ManualClock,
    timer: Timer,
    ran: Arc<AtomicUsize>,
}

impl World {
    fn new() -> World {
        let clock = ManualClock::new();
        World {
            timer: start_by_hand(&clock),
            clock,
            ran: Arc::new(AtomicUsize::new(0)),
        }
    }

    /// A callback that counts its runs.
    fn count(&self) -> impl FnOnce() + Send + use<> {
        let ran = Arc::clone(&self.ran);
        move || {
            ran.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn ran(&self) -> usize {
        self.ran.load(Ordering::Relaxed)
    }

    /// A thread that advances the clock to the callback's deadline, and runs the task.
    fn fires(&self) -> JoinHandle<()> {
        let clock = self.clock.clone();
        spawn_thread(move || {
            clock.advance(DELAY);
            run_tasks();
        })
    }

    /// Asserts whether the callback has run, and that its handle says so.
    fn assert_ran(&self, handle: &TimeoutHandle, has_run: bool) {
        assert_eq!(self.ran(), usize::from(has_run));
        assert_eq!(handle.is_expired(), has_run);
        assert_eq!(handle.is_cancelled(), !has_run);
        // Nothing holds the closure, nor the entry.
        assert_eq!(Arc::strong_count(&self.ran), 1);
        assert_eq!(self.timer.metrics().pending(), 0);
    }
}

#[test]
fn of_a_cancel_and_a_run_one_wins() {
    let outcomes = explore(3, || {
        let world = World::new();
        let handle = world.timer.call_after(DELAY, world.count());
        let thread = world.fires();
        let is_cancelled = handle.cancel();
        thread.join().unwrap();
        run_tasks();
        assert!(!handle.cancel());
        world.assert_ran(&handle, !is_cancelled);
        // Also returns whether its timer had fired.
        (is_cancelled, world.timer.metrics().fired())
    });
    assert_eq!(outcomes, [(false, 1), (true, 0), (true, 1)].into());
}

#[test]
fn of_two_cancels_one_wins() {
    let outcomes = explore(3, || {
        let world = World::new();
        let handle = world.timer.call_after(DELAY, world.count());
        let other = handle.clone();
        let thread = spawn_thread(move || other.cancel());
        let both = (handle.cancel(), thread.join().unwrap());
        world.assert_ran(&handle, false);
        both
    });
    assert_eq!(outcomes, [(false, true), (true, false)].into());
}

#[test]
fn a_callback_that_is_submitted_as_it_comes_due_runs() {
    let outcomes = explore(3, || {
        let world = World::new();
        let deadline = world.clock.now() + DELAY;
        let thread = world.fires();
        let handle = world.timer.call_at(deadline, world.count());
        thread.join().unwrap();
        let is_left = run_tasks() > 0;
        world.assert_ran(&handle, true);
        is_left
    });
    // By the other thread's task, or by one that it did not see.
    assert_eq!(outcomes, [false, true].into());
}

/// Two callbacks: one that is due, and the next, which comes due as the task finds its queue empty.
#[test]
fn a_callback_that_comes_due_as_the_task_ends_runs() {
    explore(3, || {
        let world = World::new();
        let first = world.timer.call_at(world.clock.now(), world.count());
        let handle = world.timer.call_after(DELAY, || ());
        let thread = world.fires();
        run_tasks();
        thread.join().unwrap();
        run_tasks();
        assert!(handle.is_expired());
        world.assert_ran(&first, true);
    });
}

#[test]
fn what_is_stopped_as_it_comes_due_runs_or_is_returned() {
    let outcomes = explore(3, || {
        let world = World::new();
        let handle = world.timer.call_after(DELAY, world.count());
        let thread = world.fires();
        let unrun = world.timer.shutdown_now();
        let returned = unrun.len();
        drop(unrun);
        thread.join().unwrap();
        run_tasks();
        world.assert_ran(&handle, returned == 0);
        returned
    });
    assert_eq!(outcomes, [0, 1].into());
}

#[test]
fn what_is_submitted_during_the_stop_is_refused_or_returned() {
    let outcomes = explore(3, || {
        let world = World::new();
        let stopper = world.timer.clone();
        let thread = spawn_thread(move || stopper.shutdown_now());
        let handle = world.timer.try_call_after(DELAY, world.count());
        let unrun = thread.join().unwrap();
        assert_eq!(unrun.len(), usize::from(handle.is_ok()));
        unrun.into_iter().for_each(Unrun::run);
        if let Ok(handle) = &handle {
            assert!(handle.is_cancelled());
        }
        assert_eq!(world.ran(), usize::from(handle.is_ok()));
        assert_eq!(Arc::strong_count(&world.ran), 1);
        handle.is_ok()
    });
    assert_eq!(outcomes, [false, true].into());
}

#[test]
fn two_that_stop_a_timer_get_each_callback_once() {
    let outcomes = explore(3, || {
        let world = World::new();
        let handle = world.timer.call_after(DELAY, world.count());
        let stopper = world.timer.clone();
        let thread = spawn_thread(move || stopper.shutdown_now().len());
        let mine = world.timer.shutdown_now().len();
        let both = (mine, thread.join().unwrap());
        world.assert_ran(&handle, false);
        both
    });
    assert_eq!(outcomes, [(0, 1), (1, 0)].into());
}

#[test]
fn a_drain_is_over_when_the_last_callback_has_run() {
    explore(3, || {
        let world = World::new();
        let handle = world.timer.call_after(DELAY, world.count());
        let mut drain = Task::new(world.timer.drain());
        let thread = world.fires();
        drain.run();
        assert!(drain.done_at.is_none() || world.ran() == 1);
        thread.join().unwrap();
        drain.run();
        assert!(drain.done_at.is_some(), "the last one wakes it");
        world.assert_ran(&handle, true);
    });
}

#[test]
fn a_callback_that_is_taken_as_a_drain_begins_is_waited_for() {
    let outcomes = explore(3, || {
        let world = World::new();
        let drained = world.timer.clone();
        let thread = spawn_thread(move || {
            let mut drain = Task::new(drained.drain());
            drain.run();
            drain
        });
        let handle = world.timer.try_call_after(DELAY, world.count());
        let mut drain = thread.join().unwrap();
        drain.run();
        assert_eq!(drain.done_at.is_some(), handle.is_err());
        world.clock.advance(DELAY);
        run_tasks();
        drain.run();
        assert!(drain.done_at.is_some());
        assert_eq!(world.ran(), usize::from(handle.is_ok()));
        handle.is_ok()
    });
    assert_eq!(outcomes, [false, true].into());
}
