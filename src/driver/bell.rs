//! The bell: one helper thread for the whole process that wakes drivers when it is time.
//!
//! It fires nothing itself and decides nothing: it sleeps until the earliest target of all
//! drivers and wakes those whose target has come; their own clock tells them what is due. It
//! does two things that tokio's clock cannot do for a task:
//!
//! - It wakes on time. tokio rounds a sleep up to its own next millisecond, after ours.
//! - It wakes from outside. A task that a worker wakes runs next on that worker, and if the task
//!   before it blocks, nobody else may take it; one that is woken from outside is taken by
//!   whichever worker is free.
//!
//! The thread is started when a driver first has something to wait for, and ends with the last
//! driver. While no driver has a target, it sleeps without end.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::host;
use super::shared::{Shared, Stage};
use crate::sync::{Condvar, Mutex, global, thread_local};

/// A driver that was nudged has so long to come by.
const PATIENCE: Duration = Duration::from_millis(1);

global! {
    static BELL: Bell = Bell {
        state: Mutex::new(State {
            running: false,
            members: Vec::new(),
            sleep: Sleep::Awake,
        }),
        changed: Condvar::new(),
    };
}

struct Bell {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Whether the thread runs.
    running: bool,
    /// The drivers, and when each is to be rung. They are searched in line: a process has a few.
    /// With thousands of timers of one's own, `Builder::bell(false)` spares the search.
    members: Vec<Member>,
    sleep: Sleep,
}

struct Member {
    driver: Arc<Shared>,
    at: Option<Instant>,
    /// Whether it was nudged for its last target and has not said anything since.
    nudged: bool,
}

/// What the thread is doing, as those see it who hold the lock.
#[derive(Clone, Copy)]
enum Sleep {
    /// It will look at the members again before it sleeps.
    Awake,
    Until(Instant),
    Endless,
}

/// Has the bell ring for a driver at its present target, whatever that is by now.
///
/// The target is read with the bell's lock held, so that of two calls at once the later one, and
/// with it the earlier target, wins.
pub(super) fn update(driver: &Arc<Shared>) {
    let mut state = BELL.state.lock();
    if driver.stage() >= Stage::Stopped {
        // A future that raced with the end of its timer: nobody would ever leave for it.
        return;
    }
    let at = driver
        .clock()
        .instant_of(driver.target())
        .map(tokio::time::Instant::into_std);
    match state.member(driver) {
        Some(member) => {
            member.at = at;
            member.nudged = false;
        }
        None => state.members.push(Member {
            driver: Arc::clone(driver),
            at,
            nudged: false,
        }),
    }
    if !state.running {
        if at.is_none() {
            return;
        }
        if host::start_bell(run).is_err() {
            drop(state);
            leave(driver);
            driver.lose_bell();
            return;
        }
        state.running = true;
        state.sleep = Sleep::Awake;
    }
    let is_earlier = match (at, state.sleep) {
        (Some(at), Sleep::Until(until)) => at < until,
        (Some(_), Sleep::Endless) => true,
        _ => false,
    };
    if is_earlier {
        BELL.changed.notify_one();
    }
}

/// Has the bell not ring for a driver any more; for good, if the timer is stopped.
pub(super) fn leave(driver: &Arc<Shared>) {
    // Whoever updates looks whether the timer is stopped with this lock held: either it sees that,
    // or what it adds is removed here.
    let mut state = BELL.state.lock();
    let Some(at) = state.position(driver) else {
        return;
    };
    let member = state.members.swap_remove(at);
    if state.members.is_empty() {
        BELL.changed.notify_one();
    }
    drop(state);
    // It may be the last to hold the driver's state.
    drop(member);
}

thread_local! {
    static IS_BELL: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is the bell's thread, which fires nothing itself.
pub(super) fn is_this_thread() -> bool {
    IS_BELL.try_with(Cell::get).unwrap_or(false)
}

fn run() {
    IS_BELL.with(|is_bell| is_bell.set(true));
    let mut due = Vec::new();
    // A driver that was rung will soon have a new target, as a rule the next tick. The thread
    // sleeps until then rather than without end, so that the driver need not wake it to say so:
    // half the wake-ups while timers fire, for one too many after the last.
    let mut glance: Option<Instant> = None;
    let mut state = BELL.state.lock();
    while !state.members.is_empty() {
        let now = host::machine_now();
        glance = glance.filter(|&glance| glance > now);
        for member in &mut state.members {
            if let Some(at) = member.at.filter(|&at| at <= now) {
                // A nudge that is not followed is made good by the waker.
                member.nudged = !member.nudged;
                member.at = member.nudged.then(|| now + PATIENCE);
                due.push((Arc::clone(&member.driver), member.nudged));
                let next = at + member.driver.clock().resolution().tick();
                if next > now {
                    glance = Some(glance.map_or(next, |glance| glance.min(next)));
                }
            }
        }
        if !due.is_empty() {
            drop(state);
            for (driver, by_nudge) in due.drain(..) {
                // The last to hold a runtime's handle runs what its builder was given; a panic
                // there must not end the bell of all others.
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    if by_nudge {
                        driver.nudge();
                    } else {
                        driver.ring();
                    }
                    drop(driver);
                }));
            }
            state = BELL.state.lock();
            continue;
        }
        let targets = state.members.iter().filter_map(|member| member.at);
        let next = targets.chain(glance).min();
        state.sleep = next.map_or(Sleep::Endless, Sleep::Until);
        state = BELL.changed.wait(state, next.map(|at| at - now));
        state.sleep = Sleep::Awake;
    }
    state.running = false;
}

/// In a model no wait times out by itself: whoever moves the clock says so.
#[cfg(waterwheel_loom)]
pub(super) fn clock_has_moved() {
    let state = BELL.state.lock();
    if matches!(state.sleep, Sleep::Until(until) if until <= host::machine_now()) {
        BELL.changed.notify_one();
    }
}

impl State {
    fn position(&self, driver: &Arc<Shared>) -> Option<usize> {
        self.members
            .iter()
            .position(|member| Arc::ptr_eq(&member.driver, driver))
    }

    fn member(&mut self, driver: &Arc<Shared>) -> Option<&mut Member> {
        let at = self.position(driver)?;
        Some(&mut self.members[at])
    }
}
