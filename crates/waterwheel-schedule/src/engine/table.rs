//! Which jobs are there, and in which phase is the scheduler? All under one lock, so that each race has one winner.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard};
use std::task::Waker;
use std::time::SystemTime;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use waterwheel::Timer;
use waterwheel::wheel::{Key, Resolution, Tick, Wheel};

use super::concurrency_limit::ConcurrencyLimit;
use super::entry::Entry;
use super::job::AdmittedRun;
use super::wall_clock::WallClock;
use super::wall_deadlines::WallDeadlines;
use crate::info::{Counts, Event, Hook};
use crate::sync::lock;

pub(crate) struct Table {
    pub(crate) timer: Timer,
    pub(crate) runtime: Handle,
    /// The time of day.
    pub(crate) wall: WallClock,
    pub(crate) hook: Option<Hook>,
    pub(crate) max_pending: Option<usize>,
    /// Runs that were admitted and wait for a worker task to start them.
    pub(crate) run_queue: Mutex<VecDeque<AdmittedRun>>,
    state: Mutex<State>,
    /// Runs that have begun, each counted as its job's own lock says so. Those that have ended are in the counts.
    pub(crate) runs_started: AtomicU64,
    pub(crate) terminated: Notify,
}

pub(crate) struct State {
    pub(crate) wheel: Wheel<Entry>,
    /// The number of entries, disarmed ones included.
    pub(crate) jobs: usize,
    pub(crate) phase: Phase,
    /// The `Scheduler`s there are.
    pub(crate) handles: usize,
    pub(crate) keeps_delayed: bool,
    pub(crate) keeps_periodic: bool,
    pub(crate) limit: ConcurrencyLimit,
    pub(crate) groups: Vec<ConcurrencyLimit>,
    pub(crate) counts: Counts,
    /// Those that wait for the machine's wall clock.
    pub(crate) wall_deadlines: WallDeadlines,
    /// Of the driver's task, while it waits.
    pub(crate) waker: Option<Waker>,
    /// The tick that the driver waits for; `None` if there was none.
    pub(crate) waits_for: Option<Tick>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Running,
    /// Takes nothing new. What may still run does.
    ShuttingDown,
    /// No job is left, and the driver ends.
    Terminated,
}

impl Table {
    pub(crate) fn new(
        timer: Timer,
        runtime: Handle,
        wall: WallClock,
        hook: Option<Hook>,
        max_pending: Option<usize>,
        limit: ConcurrencyLimit,
    ) -> Table {
        // A timer's resolution is one of a wheel.
        let resolution = Resolution::new(timer.resolution()).expect("a timer's resolution");
        let wheel = Wheel::starting_at(resolution, timer.tick_now());
        Table {
            timer,
            runtime,
            wall,
            hook,
            max_pending,
            run_queue: Mutex::default(),
            state: Mutex::new(State {
                wheel,
                jobs: 0,
                phase: Phase::Running,
                handles: 1,
                keeps_delayed: true,
                keeps_periodic: false,
                limit,
                groups: Vec::new(),
                counts: Counts::default(),
                wall_deadlines: WallDeadlines::default(),
                waker: None,
                waits_for: None,
            }),
            runs_started: AtomicU64::new(0),
            terminated: Notify::new(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The waker of the driver, if it has to know of a job that was filed.
    pub(crate) fn waker_of_new_wait(
        &self,
        state: &mut State,
        key: Key,
        tick: Tick,
        wall: Option<SystemTime>,
    ) -> Option<Waker> {
        match wall {
            Some(wall) if self.wall.can_be_set() => {
                state.add_wall_deadline(key, wall);
                // It waits for the wall clock too.
                state.waker.take()
            }
            _ => state.waker_of_wait_beyond(tick),
        }
    }

    /// Hands an event to the hook.
    pub(crate) fn report(&self, event: impl FnOnce() -> Event) {
        if let Some(hook) = &self.hook {
            hook.call(&event());
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").finish_non_exhaustive()
    }
}

pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl State {
    /// The waker of the driver, if it waits for a later tick than this one.
    pub(crate) fn waker_of_wait_beyond(&mut self, tick: Tick) -> Option<Waker> {
        match self.waits_for {
            Some(waits_for) if waits_for <= tick => None,
            _ => self.waker.take(),
        }
    }

    /// The waker of the driver, if it has to end, or waits for nothing any more: a clock that is paused would jump to where it waits.
    pub(crate) fn waker_if_idle(&mut self) -> Option<Waker> {
        match self.is_over() || self.wheel.is_empty() && self.waits_for.is_some() {
            true => self.waker.take(),
            false => None,
        }
    }

    /// Whether no job is left and none can come.
    pub(crate) fn is_over(&self) -> bool {
        self.jobs == 0 && (self.phase != Phase::Running || self.handles == 0)
    }

    /// Whether a shutdown leaves jobs of this kind alone.
    pub(crate) fn keeps(&self, is_periodic: bool) -> bool {
        match is_periodic {
            true => self.keeps_periodic,
            false => self.keeps_delayed,
        }
    }

    /// Takes a job that does not run, and never will, out of the table. `leave` must follow.
    pub(crate) fn take(&mut self, key: Key) -> Option<Entry> {
        let entry = self.wheel.cancel(key)?;
        self.jobs -= 1;
        self.counts.cancelled += 1;
        Some(entry)
    }
}
