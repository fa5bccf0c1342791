//! The driver: one task that starts what is due. It sleeps towards the next expiration of the table's wheel.
//!
//! # Jobs that follow the wall clock
//!
//! Such a job waits in the wheel like every other, at the instant at which the wall clock will show its time if the clock is not set
//! meanwhile. Two things make up for a clock that is set:
//!
//! - When the job is due by the wheel, the driver reads the wall clock. If that shows an earlier time, the job is filed again.
//! - The driver also sleeps towards the earliest of these times [by the wall clock itself](waterwheel::clocks::sleep_until_wall). If that
//!   comes first, because the clock was set forward or the machine was suspended, the job is due at once.

use std::cmp::Reverse;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::SystemTime;

use tokio::time::Instant;
use waterwheel::Sleep;
use waterwheel::clocks::{SleepUntilWall, sleep_until_wall};
use waterwheel::wheel::{Key, Tick, Verdict};

use super::concurrency_limit::Rank;
use super::table::{Entry, Phase, State, Status, Table};
use crate::error::JobError;
use crate::info::Event;

/// How many jobs are taken, or started, while the lock is held.
const BATCH: usize = 32;
/// How many batches one poll of the driver takes before it yields.
const BATCHES_PER_POLL: usize = 64;

/// Runs the driver until no job is left and none can be submitted.
pub(crate) async fn drive(guard: DriverGuard) {
    let mut due = DueJobs::default();
    let (mut sleep, mut wall_sleep) = (None, None);
    poll_fn(|cx| poll(&guard.table, &mut due, &mut sleep, &mut wall_sleep, cx)).await;
}

fn poll(
    table: &Arc<Table>,
    due: &mut DueJobs,
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
            true => Taken::Jobs,
            false => due.take(table),
        };
        if taken == Taken::Jobs {
            due.start(table);
        }
        if taken != Taken::Nothing {
            // Yields to the other tasks, among them the runs that were just started.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let waker = cx.waker().clone();
        let mut state = table.state();
        if state.is_finished() {
            state.phase = Phase::Terminated;
            return Poll::Ready(());
        }
        // From here on, a job that is filed for an earlier tick wakes this task.
        let next = state.wheel.next_expiration();
        state.driver_waits_until = next;
        let wall_deadline = state.next_wall_deadline().map(|(time, _)| time);
        let before = state.driver_waker.replace(waker);
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
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        let Some(at) = next.and_then(|tick| table.timer.instant_of(tick)) else {
            // A sleep that stayed armed would make a paused clock jump.
            *sleep = None;
            return Poll::Pending;
        };
        let Some(towards) = sleep.as_mut() else {
            match table.timer.try_sleep_until(at) {
                Ok(made) => *sleep = Some(made),
                // The timer was stopped. It cannot be full: a scheduler's timer has no `max_pending`.
                Err(_) => table.end_waiting_jobs(),
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
            table.end_waiting_jobs();
        }
    }
}

/// Ends all jobs if the driver is dropped before they have ended, as at the end of its runtime, even if the driver was never polled.
pub(crate) struct DriverGuard {
    pub(crate) table: Arc<Table>,
}

impl Drop for DriverGuard {
    fn drop(&mut self) {
        let mut state = self.table.state();
        state.phase = Phase::Terminated;
        let waker = state.driver_waker.take();
        let removed: Vec<Entry> = state.wheel.drain().collect();
        // Runs in progress on other threads count as running until they end.
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

/// Jobs that are due and not yet started. Until a job is started, it can be cancelled.
///
/// Jobs are taken from the wheel by whole ticks, and sorted by deadline, then by submission.
#[derive(Default)]
struct DueJobs {
    /// Once sorted, the job to start next is the last.
    jobs: Vec<(Rank, Key)>,
    /// A tick that was taken in part.
    tick: Option<Tick>,
}

/// The result of [`DueJobs::take`].
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    /// There are jobs to start.
    Jobs,
    /// Nothing is due.
    Nothing,
    /// A tick has more jobs than one poll may take.
    PartOfTick,
}

impl DueJobs {
    /// Whether there are jobs to start, and none of their tick is still in the wheel.
    fn is_ready(&self) -> bool {
        self.tick.is_none() && !self.jobs.is_empty()
    }

    /// Takes jobs that are due out of the wheel, a batch or at least one tick.
    fn take(&mut self, table: &Table) -> Taken {
        let now = table.timer.tick_now();
        for _ in 0..BATCHES_PER_POLL {
            let mut state = table.state();
            let next = self.tick.or_else(|| state.wheel.next_expiration());
            let Some(tick) = next.filter(|&next| next <= now) else {
                // Moves the hand to now, so that new jobs with near deadlines are filed on the first dials.
                state.wheel.skip_to(now);
                drop(state);
                return self.sorted();
            };
            let jobs = &mut self.jobs;
            let judge = |key, _, entry: &mut Entry| {
                entry.status = Status::Due;
                jobs.push((entry.rank(), key));
                Verdict::Disarm
            };
            let progress = state.wheel.advance_in_order(tick, BATCH, judge, |_, _| {});
            self.tick = progress.backlog.then_some(tick);
            if self.tick.is_none() && self.jobs.len() >= BATCH {
                drop(state);
                return self.sorted();
            }
        }
        match self.is_ready() {
            true => self.sorted(),
            // Part of a tick, or nothing but cascading.
            false => Taken::PartOfTick,
        }
    }

    fn sorted(&mut self) -> Taken {
        if self.jobs.is_empty() {
            // Frees the memory of a large batch.
            self.jobs.shrink_to(BATCH * BATCHES_PER_POLL);
            return Taken::Nothing;
        }
        self.jobs.sort_unstable_by_key(|&(rank, _)| Reverse(rank));
        Taken::Jobs
    }

    /// Starts a batch. The batch ends early after a job with [`Deferred`] work.
    fn start(&mut self, table: &Arc<Table>) {
        let mut starts = Vec::with_capacity(self.jobs.len().min(BATCH));
        let mut deferred = None;
        let mut state = table.state();
        for _ in 0..BATCH {
            let Some((_, key)) = self.jobs.pop() else {
                break;
            };
            // The job may have been cancelled, paused or rescheduled meanwhile.
            let entry = state.wheel.get(key);
            if !entry.is_some_and(|entry| entry.status == Status::Due) {
                continue;
            }
            let check = table.check_wall_clock(&mut state, key);
            if check.is_due {
                state.admit(key, &mut starts);
            }
            deferred = check.deferred;
            if deferred.is_some() {
                break;
            }
        }
        drop(state);
        table.start_batch(starts);
        if let Some(deferred) = deferred {
            deferred.finish(table);
        }
    }
}

impl Table {
    /// Makes the jobs due whose time the wall clock has reached. Returns `false` if there are more than one poll may take.
    fn advance_to_wall_clock(&self) -> bool {
        let (wall, now) = (self.wall.now(&self.timer), self.timer.now());
        let tick = self.timer.tick_after(now);
        for _ in 0..BATCHES_PER_POLL {
            // Locked for one batch at a time, so that other threads can submit and cancel in between.
            let mut state = self.state();
            for _ in 0..BATCH {
                let next = state.next_wall_deadline();
                let Some((time, key)) = next.filter(|&(time, _)| time <= wall) else {
                    return true;
                };
                state.wall_deadlines.remove(key, time);
                if let Some(entry) = state.wheel.get_mut(key) {
                    entry.deadline = entry.deadline.min(now);
                    state.wheel.reset(key, tick);
                }
            }
        }
        false
    }

    /// Checks a job that is due by the wheel against the wall clock and its calendar. If the job is not due by these, it is filed again, or
    /// it ends if its `until` does not allow the new time.
    fn check_wall_clock(&self, state: &mut State, key: Key) -> WallCheck {
        let waiting = state.wheel.get_mut(key);
        let Some((time, entry)) = waiting.and_then(|entry| Some((entry.wall()?, entry))) else {
            return WallCheck::due(None);
        };
        let (now, wall) = (self.timer.now(), self.wall.now(&self.timer));
        let (searched, instead) = match entry.plan_mut() {
            Some(plan) => plan.check_due(time, now, wall),
            None => (false, None),
        };
        let (time, missed) = match instead {
            Some(instead) => instead,
            None if time > wall => (time, 0),
            None => return WallCheck::due(searched.then(Deferred::default)),
        };
        let Some((time, deadline)) = self.allowed_wall(entry, time) else {
            state.jobs -= 1;
            state.counts.ended += 1;
            return WallCheck::ended(state.wheel.cancel(key));
        };
        if let Some(extras) = &mut entry.extras {
            extras.wall = Some(time);
        }
        entry.deadline = deadline;
        entry.status = Status::Waiting;
        let tick = self.timer.tick_after(deadline);
        let id = entry.id;
        let name = self.hook.as_ref().and_then(|_| entry.name().cloned());
        state.counts.missed += missed;
        state.wheel.reset(key, tick);
        if self.wall.can_be_set() {
            state.add_wall_deadline(key, time);
        }
        let runs = missed;
        let missed = (runs > 0).then_some(Event::Missed { id, name, runs });
        WallCheck::not_due(searched.then_some(Deferred {
            missed,
            ended: None,
        }))
    }

    /// The wall-clock time to wait for and its instant, if the job may run then. A time that is too late only by its jitter loses the jitter.
    fn allowed_wall(&self, entry: &Entry, time: SystemTime) -> Option<(SystemTime, Instant)> {
        let without_jitter = entry.plan().and_then(|plan| plan.next_wall);
        let mut times = [Some(time), without_jitter].into_iter().flatten();
        times.find_map(|time| {
            let at = self.wall.instant_of(time, &self.timer);
            let is_allowed = entry.plan().is_none_or(|plan| plan.allows(at));
            is_allowed.then_some((time, at))
        })
    }
}

/// The result of checking a job that is due by the wheel.
struct WallCheck {
    is_due: bool,
    /// If this is set, the caller releases the lock now: a calendar was searched, which takes long, or there is work to do without the lock.
    deferred: Option<Deferred>,
}

/// Work to do once the lock is released.
#[derive(Default)]
struct Deferred {
    /// Reports runs that were missed.
    missed: Option<Event>,
    /// A job that has had its last run.
    ended: Option<Entry>,
}

impl WallCheck {
    fn due(deferred: Option<Deferred>) -> WallCheck {
        WallCheck {
            is_due: true,
            deferred,
        }
    }

    fn not_due(deferred: Option<Deferred>) -> WallCheck {
        WallCheck {
            is_due: false,
            deferred,
        }
    }

    fn ended(ended: Option<Entry>) -> WallCheck {
        WallCheck {
            is_due: false,
            deferred: Some(Deferred {
                missed: None,
                ended,
            }),
        }
    }
}

impl Deferred {
    /// Calls foreign code, so the lock must not be held.
    fn finish(self, table: &Table) {
        if let Some(missed) = self.missed {
            table.report(|| missed);
        }
        if let Some(entry) = self.ended {
            entry.job.end_ok();
        }
    }
}
