use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;
use waterwheel::wheel::Key;

use super::JobError;
use crate::engine::job::Awaited;
use crate::engine::table::{Entry, Status};

/// A job that was submitted: await its result, cancel it, look at it.
///
/// Awaited, it gives what the job gave, or a [`JobError`]. A job that runs more than once gives `Ok(())` when it has had its last run.
/// Awaiting `&mut handle` is cancel safe. Once it has given the result, it panics if it is polled again, as tokio's `JoinHandle`.
///
/// Dropping it detaches: the job goes on.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use waterwheel_schedule::Scheduler;
///
/// let scheduler = Scheduler::new();
/// let answer = scheduler.after(Duration::from_millis(5)).run(|_| async { "6 × 7".parse::<u8>().or(Ok::<_, String>(42)) });
/// let never = scheduler.after(Duration::from_secs(3600)).run(|_| async {});
/// assert_eq!(answer.await?, 42);
/// assert!(never.cancel());
/// assert!(never.await.unwrap_err().is_cancelled());
/// # Ok(())
/// # }
/// ```
#[must_use = "a dropped handle detaches: the job goes on; `drop` it to say so"]
pub struct JobHandle<T> {
    job: Arc<dyn Awaited<T>>,
    key: Key,
}

impl<T> JobHandle<T> {
    pub(crate) fn new(job: Arc<dyn Awaited<T>>, key: Key) -> JobHandle<T> {
        JobHandle { job, key }
    }

    /// Cancels the job: no run begins any more. `true` if this call did it, so exactly once.
    ///
    /// A job that waits, is queued or paused ends now with [`JobError::Cancelled`], and its closure is dropped before this returns. A run that goes on is
    /// let finish, and its [token](crate::Context::token) is cancelled. Of a job that runs once, the handle then gives
    /// what the run gave; one that runs again ends with `Cancelled`.
    pub fn cancel(&self) -> bool {
        self.job.table().cancel(self.key)
    }

    /// [`cancel`](JobHandle::cancel), and a run that goes on ends at its next poll: its future is dropped, and the handle gives
    /// [`JobError::Cancelled`]. A run on a thread that may block goes on: it can only look at its token.
    ///
    /// `false` if the job has ended already.
    pub fn abort(&self) -> bool {
        self.job.table().abort(self.key)
    }

    /// Lets the job run no more until it is [resumed](JobHandle::resume). A run that goes on is let finish. `false` if the job has ended or is
    /// paused already, if its only run goes on, and after a shutdown.
    ///
    /// A paused job without a handle is never resumed. It ends with a [shutdown](crate::Scheduler::shutdown).
    pub fn pause(&self) -> bool {
        self.job.table().pause(self.key)
    }

    /// Lets a paused job go on. What came due meanwhile was not missed: a job at a fixed rate, or by the calendar, runs next at its first time that is not past. Other jobs
    /// keep their deadline, and run at once if that is past. `false` if it is not paused.
    pub fn resume(&self) -> bool {
        self.job.table().resume(self.key)
    }

    /// Runs the job now, beside its schedule: the run that it waits for stays where it is, if it is of a fixed rate. A job that runs once has had its
    /// run then. `false` if the job has ended, is due or runs.
    pub fn trigger_now(&self) -> bool {
        self.job.table().trigger_now(self.key)
    }

    /// Moves the next run to this instant. A fixed rate counts on from there, a calendar from the time that was moved. A paused job stays paused.
    /// `false` if the job has ended, is due or runs, or if the instant is beyond its [`until`](crate::Repeat::until).
    pub fn reschedule_at(&self, deadline: Instant) -> bool {
        self.job.table().reschedule(self.key, deadline)
    }

    /// Moves the next run to `delay` from now. Otherwise as [`reschedule_at`](JobHandle::reschedule_at).
    pub fn reschedule_after(&self, delay: Duration) -> bool {
        let now = self.job.table().timer.now();
        self.reschedule_at(crate::engine::plan::add(now, delay))
    }

    /// Lets a job that repeats go by this schedule from now on. `false` if the job runs once, has ended, is due or runs, or if the schedule has
    /// no time left. A paused job stays paused.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use waterwheel_schedule::Scheduler;
    /// use waterwheel_schedule::calendar::Schedule;
    ///
    /// let scheduler = Scheduler::new();
    /// let report = scheduler.cron("0 9 * * *", "UTC")?.run(|_| async {});
    /// assert!(report.reschedule_by_calendar(Schedule::parse("30 9 * * MON-FRI", "UTC")?));
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "cron")]
    pub fn reschedule_by_calendar(&self, schedule: crate::calendar::Schedule) -> bool {
        self.job.table().reschedule_by_calendar(self.key, schedule)
    }

    /// Whether the job runs more than once. `false` when it has ended.
    #[must_use]
    pub fn is_periodic(&self) -> bool {
        self.look(Entry::is_periodic).unwrap_or(false)
    }

    /// Whether the job has ended: no run of it goes on or will begin.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.look(|_| ()).is_none()
    }

    /// Whether the job was cancelled, by a handle, from inside or by a shutdown. A run may go on.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.job.is_cancelled()
    }

    /// Whether a run of the job goes on.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.look(|entry| entry.status == Status::Running)
            .unwrap_or(false)
    }

    /// Whether the job is paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.look(|entry| entry.status == Status::Paused || entry.pauses)
            .unwrap_or(false)
    }

    /// When the next run is due. `None` while one goes on, if the job is paused, and when it has ended.
    #[must_use]
    pub fn next_run(&self) -> Option<Instant> {
        self.look(|entry| match entry.status {
            Status::Running | Status::Paused => None,
            _ => Some(entry.deadline),
        })?
    }

    /// The time until the next run; zero if it is due. `None` as of [`next_run`](JobHandle::next_run).
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let next = self.next_run()?;
        Some(next.saturating_duration_since(self.job.table().timer.now()))
    }

    /// How many runs of the job have ended. A run that is tried again counts once.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.job.runs()
    }

    /// What the last run that failed said.
    #[must_use]
    pub fn last_error(&self) -> Option<Arc<str>> {
        self.job.last_error()
    }

    fn look<R>(&self, look: impl FnOnce(&Entry) -> R) -> Option<R> {
        let state = self.job.table().state();
        state.wheel.get(self.key).map(look)
    }
}

impl<T> Future for JobHandle<T> {
    type Output = Result<T, JobError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.job.poll_result(cx)
    }
}

impl<T> fmt::Debug for JobHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobHandle")
            .field("is_done", &self.is_done())
            .field("runs", &self.runs())
            .finish_non_exhaustive()
    }
}
