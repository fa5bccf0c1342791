//! What a program has: a [`Scheduler`], to submit jobs to and to look into.
//!
//! `builder` makes one, and `life` ends it.

mod builder;
mod life;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use waterwheel::Timer;

use crate::engine::Context;
use crate::engine::plan::{Pace, add};
use crate::engine::share::Share;
use crate::engine::table::{Table, wake};
use crate::group::Group;
use crate::handle::JobControl;
use crate::look::{Counts, JobInfo};
use crate::submit::{Once, Options, Repeat};

pub use builder::Builder;

/// Runs jobs: after a delay, at an instant, at a fixed rate, with a fixed delay.
///
/// A job that waits is an entry of a [`Wheel`](waterwheel::wheel::Wheel), and no task. When it is due, it runs within a task of the
/// runtime. If more than three are due together, tasks begin them one after the other: jobs that end at their first poll share [`tokio::task::id`] and the
/// cooperative budget, and a job that is not done then keeps its task. Jobs are started in order of their deadlines, equal ones in the order in which they were submitted. A job that panics harms no other.
///
/// A `Scheduler` is cheap to clone, and all clones are the same one. When the last clone is dropped, the jobs go on; then only handles and
/// the jobs themselves reach them. The scheduler ends when no job is left. It ends with its runtime, and when it finds its timer stopped: all handles give
/// [`JobError::Shutdown`](crate::JobError::Shutdown) then.
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
    table: Arc<Share>,
}

impl Scheduler {
    /// A scheduler on the current runtime and its timer, [`Timer::current`], without limits.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, or in one without `enable_time`.
    #[must_use]
    #[track_caller]
    pub fn new() -> Scheduler {
        Scheduler::builder().build()
    }

    /// To set limits, a timer of your own, or a function for events.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn of_table(table: &Arc<Table>) -> Scheduler {
        table.state().handles += 1;
        Scheduler {
            table: Share::new(Arc::clone(table)),
        }
    }

    /// A job that runs once, `delay` from now.
    ///
    /// Zero is the end of the running tick. A delay beyond the range of `Instant` is thirty years.
    pub fn after(&self, delay: Duration) -> Once<'_> {
        self.at(add(self.table.timer.now(), delay))
    }

    /// A job that runs once, at `deadline`. One that is past is due at once.
    pub fn at(&self, deadline: Instant) -> Once<'_> {
        Once::new(Options::new(&self.table, deadline))
    }

    /// A job that runs once, when the wall clock shows `time`. One that is past is due at once.
    ///
    /// If the wall clock is set, or the machine is suspended, the job goes by the new time: it never runs before the clock shows `time`.
    /// It does not poll ([how it waits](waterwheel::clocks#how-they-wait)). In virtual time, see
    /// [`Builder::virtual_wall_clock`].
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

    /// A job at a fixed rate: its deadlines are `period` apart, however long a run takes. The first is one period from now.
    ///
    /// # Panics
    ///
    /// If `period` is zero.
    #[track_caller]
    pub fn every(&self, period: Duration) -> Repeat<'_> {
        self.repeat(period, Pace::Rate(period))
    }

    /// A job with a fixed delay: each run is `period` after the end of the one before. The first is one period from now.
    ///
    /// # Panics
    ///
    /// If `period` is zero.
    #[track_caller]
    pub fn with_delay(&self, period: Duration) -> Repeat<'_> {
        self.repeat(period, Pace::Delay(period))
    }

    /// A job by the calendar: a cron expression in a time zone, by its IANA name.
    ///
    /// [`calendar`](crate::calendar) says what an expression may have, and what happens when the clock is put forward or back. Like
    /// [`at_wall`](Scheduler::at_wall), it goes by the wall clock, also when that is set. What was missed meanwhile, [`Missed`](crate::Missed)
    /// decides; at most 100 missed runs are counted. So also if a time comes up late, and the time after it is past as well; if that is not, the
    /// run begins late. [`Context::scheduled_wall`](crate::Context::scheduled_wall) says for which time a run is. If the clock is set back, a time that has had its run has no other, unless the clock is set back by more than a day.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`](crate::calendar::ScheduleError), if the expression or the zone is wrong.
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
    ) -> Result<Repeat<'_>, crate::calendar::ScheduleError> {
        Ok(self.by_calendar(crate::calendar::Schedule::parse(expression, zone)?))
    }

    /// A job by a schedule that was parsed before. One that never comes any more ends at once, well.
    #[cfg(feature = "cron")]
    pub fn by_calendar(&self, schedule: crate::calendar::Schedule) -> Repeat<'_> {
        let now = self.table.wall.now(&self.table.timer);
        let first = crate::engine::first_occurrence(&schedule, now);
        let (timer, wall) = (&self.table.timer, &self.table.wall);
        let deadline = first.map_or_else(|| timer.now(), |first| wall.instant_of(first, timer));
        let mut options = Options::new(&self.table, deadline);
        options.wall = first;
        let job = Repeat::new(options, Pace::Calendar(schedule));
        match first {
            Some(_) => job,
            None => job.without_runs(),
        }
    }

    #[track_caller]
    fn repeat(&self, period: Duration, pace: Pace) -> Repeat<'_> {
        assert!(!period.is_zero(), "`period` must be non-zero.");
        let first = add(self.table.timer.now(), period);
        Repeat::new(Options::new(&self.table, first), pace)
    }

    /// A group of jobs, of which at most `most` run at a time. The others wait, first in, first out.
    ///
    /// Jobs of a group of one are started in order of their deadlines, each when the one before has ended. A group stays for as long as its scheduler.
    ///
    /// # Panics
    ///
    /// If `most` is 0.
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

    /// The jobs that there are, in no particular order. Jobs that have ended are not among them.
    ///
    /// O(jobs), some 0.1 µs each: for a list on a screen, and not for each submission. The scheduler goes on meanwhile. So a job that is submitted or
    /// ends during the call may be in the list, or not.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobInfo> {
        self.table.list(|_, entry| Some(entry.info()))
    }

    /// Controls of the jobs with this name, in no particular order. Names need not be unique.
    ///
    /// O(jobs), as [`jobs`](Scheduler::jobs): for commands of an operator. A program keeps [controls](crate::JobHandle::control) of its own.
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
        self.table.list(|key, entry| {
            let is_named = entry.name().is_some_and(|it| **it == *name);
            is_named.then(|| JobControl::new(Arc::clone(&entry.job), key))
        })
    }

    /// How many jobs and runs there were and are.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let state = self.table.state();
        // A run is counted as ended with the lock held, after it was counted as begun. Its job leaves the table with that, and not earlier.
        let running = self.table.begun.load(Ordering::Relaxed) - state.counts.finished;
        Counts {
            pending: state.jobs as u64 - running,
            running,
            ..state.counts
        }
    }

    /// When the scheduler next has something to do: the deadline of its next job, or earlier. `None` if no job waits.
    #[must_use]
    pub fn next_expiration(&self) -> Option<Instant> {
        let next = self.table.state().wheel.next_expiration()?;
        self.table.timer.instant_of(next)
    }

    /// The timer by which the scheduler measures.
    #[must_use]
    pub fn timer(&self) -> &Timer {
        &self.table.timer
    }
}

/// Here, since a scheduler stands above what a run is handed.
impl Context {
    /// The job's scheduler: a job may submit others, and shut it down.
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
    /// The last one lets the driver end, once no job is left.
    fn drop(&mut self) {
        let mut state = self.table.state();
        state.handles -= 1;
        let waker = state.waker_if_idle();
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
