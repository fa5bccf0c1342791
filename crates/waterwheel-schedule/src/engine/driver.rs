//! Who starts what is due? One task, which sleeps towards the next expiration of the table's wheel.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use waterwheel::Sleep;
use waterwheel::clocks::{SleepUntilWall, sleep_until_wall};

use super::due::{Due, Taken};
use super::entry::Entry;
use super::table::{Phase, Table};
use crate::error::JobError;

/// The driver's task.
pub(crate) async fn drive(guard: DriverGuard) {
    let mut due = Due::default();
    let (mut sleep, mut wall_sleep) = (None, None);
    poll_fn(|cx| poll(&guard.table, &mut due, &mut sleep, &mut wall_sleep, cx)).await;
}

fn poll(
    table: &Arc<Table>,
    due: &mut Due,
    sleep: &mut Option<Sleep>,
    wall_sleep: &mut Option<SleepUntilWall>,
    cx: &mut TaskContext<'_>,
) -> Poll<()> {
    loop {
        if table.spawn_queue_worker() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let taken = match due.is_ready() {
            true => Taken::Some,
            false => due.take(table),
        };
        if taken == Taken::Some {
            due.start(table);
        }
        if taken != Taken::Nothing {
            // Others run in between, and what was started is among them.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let waker = cx.waker().clone();
        let mut state = table.state();
        if state.is_over() {
            state.phase = Phase::Terminated;
            return Poll::Ready(());
        }
        // From here on, what is filed for an earlier tick wakes the task.
        let next = state.wheel.next_expiration();
        state.waits_for = next;
        let wall_deadline = state.next_wall_deadline().map(|(time, _)| time);
        let before = state.waker.replace(waker);
        drop(state);
        drop(before);
        if wall_sleep.as_ref().map(SleepUntilWall::deadline) != wall_deadline {
            *wall_sleep = wall_deadline.map(sleep_until_wall);
        }
        if let Some(sleep) = wall_sleep {
            if Pin::new(sleep).poll(cx).is_ready() {
                *wall_sleep = None;
                if table.advance_to_wall_clock() {
                    continue;
                }
                // Others run in between.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        let Some(at) = next.and_then(|tick| table.timer.instant_of(tick)) else {
            // A sleep that is left would make a paused clock jump.
            *sleep = None;
            return Poll::Pending;
        };
        let Some(towards) = sleep.as_mut() else {
            match table.timer.try_sleep_until(at) {
                Ok(made) => *sleep = Some(made),
                // It was stopped: a scheduler's timer has no bound.
                Err(_) => table.end_waiting(),
            }
            continue;
        };
        if towards.deadline() != at || towards.is_elapsed() {
            towards.set_deadline(at);
        }
        if Pin::new(&mut *towards).poll(cx).is_pending() {
            return Poll::Pending;
        }
        if towards.was_stopped() {
            // Nothing would ever be due.
            table.end_waiting();
        }
    }
}

/// Ends all jobs when the driver ends before them: when its runtime does, even if the driver never ran.
pub(crate) struct DriverGuard {
    pub(crate) table: Arc<Table>,
}

impl Drop for DriverGuard {
    fn drop(&mut self) {
        let mut state = self.table.state();
        state.phase = Phase::Terminated;
        let waker = state.waker.take();
        let removed: Vec<Entry> = state.wheel.drain().collect();
        // Runs that go on, on other threads, count as such until they end.
        state.jobs = removed.iter().filter(|entry| !entry.withdraw()).count();
        state.counts.cancelled += (removed.len() - state.jobs) as u64;
        drop(state);
        drop(waker);
        drop(self.table.drain_run_queue());
        for entry in removed {
            entry.job.end(JobError::Shutdown);
        }
        self.table.terminated.notify_waiters();
    }
}
