//! The wake-up thread: one helper thread for the whole process, which wakes drivers at their targets.
//!
//! It serves no timer, and decides only how to wake. It sleeps until the earliest target of all drivers, and wakes the drivers whose
//! target has come. Each driver reads its own clock to see what is due. The thread does two things that tokio's clock cannot
//! do for a task:
//!
//! - It wakes on time. tokio rounds a sleep up to its own next millisecond, after ours.
//! - It wakes from outside. A task that a worker wakes runs next on that worker. If the task before it blocks, no other worker
//!   can take it. A task that is woken from outside is taken by any worker that is free.
//!
//! The thread is started when a driver first has a target, and ends with the last driver. While no driver has a target, it
//! sleeps without end.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Wakeup;
use crate::clock::machine_now;
use crate::driver::host;
use crate::sync::atomic::Ordering;
use crate::sync::{Condvar, Mutex, global, thread_local};

/// How long the thread waits for a driver to answer a nudge with a new target, before it wakes the driver's task.
const PATIENCE: Duration = Duration::from_millis(1);

global! {
    static THREAD: Thread = Thread {
        members: Mutex::new(Members {
            is_running: false,
            list: Vec::new(),
            rest: Rest::Awake,
        }),
        changed: Condvar::new(),
    };
}

struct Thread {
    members: Mutex<Members>,
    changed: Condvar,
}

/// The drivers that the thread serves.
struct Members {
    /// Whether the thread runs.
    is_running: bool,
    /// It is searched in line: a process has a few timers. For a process with thousands of them,
    /// `Builder::wakeup_thread(false)` spares the search.
    list: Vec<Member>,
    rest: Rest,
}

struct Member {
    driver: Arc<Wakeup>,
    /// When to wake it.
    at: Option<Instant>,
    /// Whether it was nudged at its last target and has not updated it since.
    is_nudged: bool,
}

/// What the thread does, as seen by a caller that holds the lock.
#[derive(Clone, Copy)]
enum Rest {
    /// It looks at the members again before it sleeps.
    Awake,
    Until(Instant),
    Endless,
}

/// Sets the thread to wake a driver at its present target.
///
/// The target is read with the lock held. So of two updates at once, the second to take the lock reads the lower target.
pub(super) fn update(driver: &Arc<Wakeup>) {
    let mut members = THREAD.members.lock();
    // Relaxed: `leave` writes it with this lock held.
    if driver.has_ended.load(Ordering::Relaxed) {
        // A future meets the end of its timer. The driver has left, and would not leave again.
        return;
    }
    let at = driver
        .clock
        .instant_of(driver.target())
        .map(tokio::time::Instant::into_std);
    match members.position(driver) {
        Some(position) => {
            members.list[position].at = at;
            members.list[position].is_nudged = false;
        }
        None => members.list.push(Member {
            driver: Arc::clone(driver),
            at,
            is_nudged: false,
        }),
    }
    if !members.is_running {
        if at.is_none() {
            return;
        }
        if host::start_wakeup_thread(run).is_err() {
            let member = members.remove(driver);
            drop(members);
            // Without the lock, as in `leave`.
            drop(member);
            driver.lose_thread();
            return;
        }
        members.is_running = true;
        members.rest = Rest::Awake;
    }
    let is_earlier = match (at, members.rest) {
        (Some(at), Rest::Until(until)) => at < until,
        (Some(_), Rest::Endless) => true,
        _ => false,
    };
    if is_earlier {
        THREAD.changed.notify_one();
    }
}

/// Takes a driver that has ended off the list, for good.
pub(super) fn leave(driver: &Arc<Wakeup>) {
    let mut members = THREAD.members.lock();
    // An `update` that comes later sees it, and the member that an earlier one has added is removed here.
    driver.has_ended.store(true, Ordering::Relaxed);
    let member = members.remove(driver);
    if member.is_some() && members.list.is_empty() {
        THREAD.changed.notify_one();
    }
    drop(members);
    // It may hold the last reference to a runtime, whose end runs foreign code.
    drop(member);
}

thread_local! {
    static IS_WAKEUP_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is the wake-up thread, which takes no turn.
pub(in crate::driver) fn is_this_thread() -> bool {
    IS_WAKEUP_THREAD.try_with(Cell::get).unwrap_or(false)
}

fn run() {
    IS_WAKEUP_THREAD.with(|is_this| is_this.set(true));
    let mut due = Vec::new();
    // As a rule a driver that was woken takes the next tick as its new target. The thread sleeps until that tick rather than
    // without end, so that the driver need not notify it: half the wake-ups of the thread while timers fire, and one needless
    // wake-up after the last.
    let mut expected: Option<Instant> = None;
    let mut members = THREAD.members.lock();
    while !members.list.is_empty() {
        let now = machine_now();
        expected = expected.filter(|&expected| expected > now);
        for member in &mut members.list {
            if let Some(at) = member.at.filter(|&at| at <= now) {
                // First a nudge. If it goes unanswered for `PATIENCE`, the second round wakes the task itself.
                member.is_nudged = !member.is_nudged;
                member.at = member.is_nudged.then(|| now + PATIENCE);
                due.push((Arc::clone(&member.driver), member.is_nudged));
                let next = at + member.driver.clock.resolution().tick();
                if next > now {
                    expected = Some(expected.map_or(next, |expected| expected.min(next)));
                }
            }
        }
        if !due.is_empty() {
            drop(members);
            for (driver, by_nudge) in due.drain(..) {
                // To drop the last reference to a runtime runs what its builder was given. A panic there must not end the
                // thread of all other drivers.
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    if by_nudge {
                        driver.nudge();
                    } else {
                        driver.wake();
                    }
                    drop(driver);
                }));
            }
            members = THREAD.members.lock();
            continue;
        }
        let targets = members.list.iter().filter_map(|member| member.at);
        let next = targets.chain(expected).min();
        members.rest = next.map_or(Rest::Endless, Rest::Until);
        members = THREAD.changed.wait(members, next.map(|at| at - now));
        members.rest = Rest::Awake;
    }
    members.is_running = false;
}

/// In a model no wait times out by itself: the model moves the clock and calls this.
#[cfg(waterwheel_loom)]
pub(in crate::driver) fn clock_has_moved() {
    let members = THREAD.members.lock();
    if matches!(members.rest, Rest::Until(until) if until <= machine_now()) {
        THREAD.changed.notify_one();
    }
}

impl Members {
    fn position(&self, driver: &Arc<Wakeup>) -> Option<usize> {
        self.list
            .iter()
            .position(|member| Arc::ptr_eq(&member.driver, driver))
    }

    fn remove(&mut self, driver: &Arc<Wakeup>) -> Option<Member> {
        let position = self.position(driver)?;
        Some(self.list.swap_remove(position))
    }
}
