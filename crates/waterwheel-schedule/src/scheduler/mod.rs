//! The [`Scheduler`]: submits jobs, lists and counts them.
//!
//! `builder` creates one, and `shutdown` ends it.

mod builder;
mod shutdown;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use waterwheel::Timer;

use crate::engine::Context;
use crate::engine::plan::{Recurrence, saturating_add};
use crate::engine::table::{Entry, Table, TableRef, wake};
use crate::group::Group;
use crate::handle::JobControl;
use crate::info::{Counts, JobId, JobInfo};
use crate::submit::{Once, Options, Repeat};

pub use builder::Builder;

/// Runs jobs once after a delay or at an instant, at a fixed rate, with a fixed delay, or by cron.
///
/// Methods such as [`after`](Scheduler::after) and [`every`](Scheduler::every) prepare a job, whose `run` method
/// submits it. Jobs are started in order of their deadlines, and jobs with equal deadlines in the order of their
/// submission. A job that panics does not affect the others.
///
/// A `Scheduler` is cheap to clone, and all clones refer to the same scheduler. When the last clone is dropped, its
/// jobs continue; they can then be reached only via their handles and controls, or from within a job. The scheduler
/// ends when no job is left. It also ends with its runtime, and when it finds its timer stopped; all handles then yield
/// [`JobError::Shutdown`](crate::JobError::Shutdown).
///
/// # Tasks
///
/// A waiting job is an entry of a [`Wheel`](waterwheel::wheel::Wheel), not a task. When it is due, it runs in a task of the runtime.
///
/// If more than three jobs are due together, tasks begin them one after the other. Jobs that finish at their first poll then share
/// [`tokio::task::id`] and the cooperative budget, and a job that is still pending keeps its task to itself.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::Duration;
/// use waterwheel_schedule::Scheduler;
///
/// let scheduler = Scheduler::new();
/// let reminder = scheduler.after(Duration::from_millis(20)).run(|_| async { println!("tea is ready") });
/// let heartbeat = scheduler.every(Duration::from_millis(5)).name("heartbeat").run(|context| async move {
///     println!("heartbeat {}", context.run());
/// });
///
/// reminder.await.unwrap();
/// heartbeat.cancel();
/// scheduler.shutdown();
/// assert!(scheduler.await_termination(Duration::from_secs(5)).await);
/// # }
/// ```
pub struct Scheduler {
    table: Arc<TableRef>,
}

impl Scheduler {
    /// Creates a scheduler without limits, on the current runtime and its timer, [`Timer::current`].
    /// [`Builder::runtime`] sets another runtime.
    ///
    /// # Panics
    ///
    /// Panics if it is called outside a tokio runtime, or if the runtime was built without `enable_time` or its timer was shut down.
    #[must_use]
    #[track_caller]
    pub fn new() -> Scheduler {
        Scheduler::builder().build()
    }

    /// Returns a builder, to set limits, a timer of your own, or a function that receives events.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn of_table(table: &Arc<Table>) -> Scheduler {
        table.state().scheduler_clones += 1;
        Scheduler {
            table: TableRef::new(Arc::clone(table)),
        }
    }

    /// Prepares a job that runs once, `delay` from now.
    ///
    /// With [`Duration::ZERO`], the job is due at the end of the current tick. A delay beyond the range of `Instant`
    /// counts as thirty years.
    pub fn after(&self, delay: Duration) -> Once<'_> {
        self.at(saturating_add(self.table.timer.now(), delay))
    }

    /// Prepares a job that runs once, at `deadline`. If that has passed, the job is due immediately.
    pub fn at(&self, deadline: Instant) -> Once<'_> {
        Once::new(Options::new(&self.table, deadline))
    }

    /// Prepares a job that runs once, when the wall clock shows `time`. If that has passed, the job is due immediately.
    ///
    /// The job follows the wall clock if it is set and after the machine was suspended, and never runs before the clock
    /// shows `time`. On Linux the clock is not polled ([how it waits](waterwheel::clocks#how-they-wait)). For virtual
    /// time, see [`Builder::virtual_wall_clock`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::{Duration, SystemTime};
    /// use waterwheel_schedule::Scheduler;
    ///
    /// let scheduler = Scheduler::new();
    /// let soon = SystemTime::now() + Duration::from_millis(20);
    /// scheduler.at_wall(soon).run(|_| async {}).await.unwrap();
    /// assert!(SystemTime::now() >= soon);
    /// # }
    /// ```
    pub fn at_wall(&self, time: SystemTime) -> Once<'_> {
        let deadline = self.table.wall.instant_of(time, &self.table.timer);
        let mut options = Options::new(&self.table, deadline);
        options.wall = Some(time);
        Once::new(options)
    }

    /// Prepares a job at a fixed rate: its deadlines are `period` apart, however long a run takes. The first run is one period from now.
    ///
    /// Runs never overlap. Runs that were missed are skipped, unless [`Repeat::misfire`](crate::Repeat::misfire) sets another misfire policy.
    ///
    /// # Panics
    ///
    /// Panics if `period` is zero.
    #[doc(alias = "fixed rate")]
    #[doc(alias = "scheduleAtFixedRate")]
    #[track_caller]
    pub fn every(&self, period: Duration) -> Repeat<'_> {
        self.repeat(period, Recurrence::FixedRate(period))
    }

    /// Prepares a job with a fixed delay: each run is due `period` after the end of the run before. The first run is one period from now.
    ///
    /// # Panics
    ///
    /// Panics if `period` is zero.
    #[doc(alias = "fixed delay")]
    #[doc(alias = "scheduleWithFixedDelay")]
    #[track_caller]
    pub fn with_delay(&self, period: Duration) -> Repeat<'_> {
        self.repeat(period, Recurrence::FixedDelay(period))
    }

    /// Prepares a job by a cron expression, in the time zone with this IANA name.
    ///
    /// [`calendar`](crate::calendar) describes the syntax of expressions, and what happens when daylight saving time
    /// begins or ends. Like [`at_wall`](Scheduler::at_wall), the job follows the wall clock if that is set. If the
    /// clock is set back, a time that has had its run is not run again, unless the clock is set back by more than a
    /// day.
    ///
    /// The misfire policy, [`Misfire`](crate::Misfire), decides what happens to missed runs; at most 100 of them are
    /// counted. A late run counts as missed only if the time after it has passed as well; otherwise it begins late.
    /// [`Context::scheduled_wall`](crate::Context::scheduled_wall) tells a run which time it is for.
    ///
    /// # Errors
    ///
    /// Returns a [`ScheduleError`](crate::calendar::ScheduleError) if the expression or the zone is invalid.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel_schedule::calendar::ScheduleError> {
    /// use waterwheel_schedule::Scheduler;
    ///
    /// let scheduler = Scheduler::new();
    /// let report = scheduler.cron("0 9 * * TUE", "UTC")?.name("report").run(|_| async {});
    /// assert!(report.time_left().unwrap().as_secs() <= 7 * 86_400);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "cron")]
    pub fn cron(
        &self,
        expression: &str,
        zone: &str,
    ) -> Result<Repeat<'_>, waterwheel_cron::ScheduleError> {
        Ok(self.by_calendar(waterwheel_cron::Schedule::parse(expression, zone)?))
    }

    /// Prepares a job by a schedule that was parsed before.
    ///
    /// If the schedule has no time left, the job ends as soon as it is submitted, and its handle yields `Ok(())`.
    #[cfg(feature = "cron")]
    pub fn by_calendar(&self, schedule: waterwheel_cron::Schedule) -> Repeat<'_> {
        let now = self.table.wall.now(&self.table.timer);
        let first = crate::engine::plan::first_occurrence(&schedule, now);
        let (timer, wall) = (&self.table.timer, &self.table.wall);
        let deadline = first.map_or_else(|| timer.now(), |first| wall.instant_of(first, timer));
        let mut options = Options::new(&self.table, deadline);
        options.wall = first;
        let job = Repeat::new(options, Recurrence::Calendar(schedule));
        match first {
            Some(_) => job,
            None => job.without_runs(),
        }
    }

    #[track_caller]
    fn repeat(&self, period: Duration, recurrence: Recurrence) -> Repeat<'_> {
        assert!(!period.is_zero(), "`period` must be non-zero.");
        let first = saturating_add(self.table.timer.now(), period);
        Repeat::new(Options::new(&self.table, first), recurrence)
    }

    /// Creates a group of jobs, of which at most `most` run at the same time.
    ///
    /// Jobs beyond the limit are queued in order of their deadlines, then of their submission. With a limit of one,
    /// each job starts when the one before it has ended. A group exists for as long as its scheduler.
    ///
    /// # Panics
    ///
    /// Panics if `most` is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::Duration;
    /// use waterwheel_schedule::Scheduler;
    ///
    /// let scheduler = Scheduler::new();
    /// let exports = scheduler.group("exports", 2);
    /// let export = scheduler.after(Duration::ZERO).group(&exports).run(|_| async {});
    /// export.await.unwrap();
    /// # }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn group(&self, name: impl Into<Arc<str>>, most: usize) -> Group {
        Group::new(&self.table, name.into(), most)
    }

    /// Lists the jobs that have not ended, in no particular order.
    ///
    /// This takes O(jobs), about 0.1 µs per job: it is meant for a list on a screen, not for every submission. The
    /// scheduler continues during the call, so a job that is submitted or ends meanwhile may or may not be in the list.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobInfo> {
        self.table.list(|_, entry| Some(entry.info()))
    }

    /// Returns a control of the job with this id, or `None` if the job has ended or the scheduler never gave this id.
    ///
    /// This takes O(jobs), like [`jobs`](Scheduler::jobs): it is meant for the commands of an operator who sees the id in a
    /// list or in a log. A program should keep the [controls](crate::JobHandle::control) that it needs.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use waterwheel_schedule::{JobId, Scheduler};
    ///
    /// let scheduler = Scheduler::new();
    /// drop(scheduler.every(Duration::from_secs(60)).run(|_| async {}));
    ///
    /// // A page lists the jobs, and a request names one of them.
    /// let listed = scheduler.jobs()[0].id.to_string();
    /// let id = JobId::from(listed.parse::<u64>()?);
    /// assert!(scheduler.job(id).is_some_and(|job| job.cancel()));
    /// assert!(scheduler.job(id).is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn job(&self, id: JobId) -> Option<JobControl> {
        self.controls(|entry| entry.id == id).pop()
    }

    /// Returns controls of all jobs with this name, in no particular order. Names need not be unique.
    ///
    /// This takes O(jobs), like [`jobs`](Scheduler::jobs): it is meant for an operator's commands. A program should keep the
    /// [controls](crate::JobHandle::control) that it needs.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::Duration;
    /// use waterwheel_schedule::Scheduler;
    ///
    /// let scheduler = Scheduler::new();
    /// drop(scheduler.every(Duration::from_secs(60)).name("report").run(|_| async {}));
    ///
    /// for report in scheduler.find("report") {
    ///     assert!(report.pause());
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn find(&self, name: &str) -> Vec<JobControl> {
        self.controls(|entry| entry.name().is_some_and(|it| **it == *name))
    }

    fn controls(&self, is_wanted: impl Fn(&Entry) -> bool) -> Vec<JobControl> {
        self.table.list(|key, entry| {
            is_wanted(entry).then(|| JobControl::new(Arc::clone(&entry.job), key, entry.id))
        })
    }

    /// Returns the numbers of jobs and runs, past and present.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let state = self.table.state();
        // A run is counted as started first, and as finished while the lock is held. Its job does not leave the table earlier.
        let running = self.table.runs_started.load(Ordering::Relaxed) - state.counts.finished;
        Counts {
            pending: state.jobs as u64 - running,
            running,
            ..state.counts
        }
    }

    /// Returns when the scheduler next has something to do: the deadline of its next job, or earlier. `None` if no job is waiting.
    #[must_use]
    pub fn next_expiration(&self) -> Option<Instant> {
        let next = self.table.state().wheel.next_expiration()?;
        self.table.timer.instant_of(next)
    }

    /// Returns the timer that the scheduler measures time with.
    #[must_use]
    pub fn timer(&self) -> &Timer {
        &self.table.timer
    }
}

// Here, because the engine, with `Context`, does not know `Scheduler`.
impl Context {
    /// Returns the job's scheduler. A job may submit other jobs to it, and may shut it down.
    #[must_use]
    pub fn scheduler(&self) -> Scheduler {
        Scheduler::of_table(self.table())
    }
}

impl Default for Scheduler {
    fn default() -> Scheduler {
        Scheduler::new()
    }
}

impl Clone for Scheduler {
    fn clone(&self) -> Scheduler {
        Scheduler::of_table(&self.table)
    }
}

impl Drop for Scheduler {
    /// When the last clone is dropped, lets the scheduler end as soon as no job is left.
    fn drop(&mut self) {
        let mut state = self.table.state();
        state.scheduler_clones -= 1;
        let waker = state.driver_waker_if_idle();
        drop(state);
        wake(waker);
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler")
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}
