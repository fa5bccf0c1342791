//! The handle and the control of a submitted job.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;
use waterwheel::wheel::Key;

use crate::engine::plan::saturating_add;
use crate::engine::table::Job;
use crate::engine::task::TypedJob;
use crate::error::JobError;
use crate::info::JobId;

/// The methods of both handles and controls, which have a `job`, its `key` and its `id`.
macro_rules! controls {
    () => {
        /// Returns the id of the job, which events and lists show. [`Scheduler::job`](crate::Scheduler::job) finds a job by its id.
        #[must_use]
        pub fn id(&self) -> JobId {
            self.id
        }

        /// Cancels the job: no further run begins. Returns `true` for the call that cancelled it, so exactly once.
        ///
        /// A job that is not running (it is waiting, queued, paused or about to begin) ends now with
        /// [`Cancelled`](crate::JobError::Cancelled), and its closure is dropped before this call returns.
        ///
        /// A run in progress is allowed to finish, and its [token](crate::Context::token) is cancelled. The handle
        /// completes only when that run has ended, whereas Java's `get` throws at once. The handle of a job that runs
        /// once then yields the result of the run; a job that would have run again ends with `Cancelled`. To end the
        /// run as well, call [`abort`](Self::abort).
        pub fn cancel(&self) -> bool {
            self.job.table().cancel(self.key)
        }

        /// Cancels the job like [`cancel`](Self::cancel), and ends a run in progress at its next poll: its future is
        /// dropped, and the handle yields [`Cancelled`](crate::JobError::Cancelled).
        ///
        /// A blocking run continues, since it cannot be stopped from outside; it can only watch its [token](crate::Context::token).
        ///
        /// Returns `false` if the job has already ended.
        pub fn abort(&self) -> bool {
            self.job.table().abort(self.key)
        }

        /// Pauses the job: no run begins until it is [resumed](Self::resume). A run in progress is allowed to finish.
        ///
        /// Returns `false` if the job has ended, was cancelled or is already paused, if its only run is in progress or
        /// about to begin, and after a shutdown. A [shutdown](crate::Scheduler::shutdown) ends jobs that are still
        /// paused.
        pub fn pause(&self) -> bool {
            self.job.table().pause(self.key)
        }

        /// Resumes a paused job. Returns `false` if it is not paused.
        ///
        /// Runs that came due during the pause do not count as missed, so the misfire policy does not apply: a job at a
        /// fixed rate or by the calendar next runs at its first time that has not passed. Other jobs keep their
        /// deadline, and run immediately if that has passed.
        pub fn resume(&self) -> bool {
            self.job.table().resume(self.key)
        }

        /// Runs the job now, in addition to its schedule: a job at a fixed rate or by the calendar keeps the time of
        /// its next run. A job that runs once has then had its run. A paused job stays paused after the run.
        ///
        /// If the job is due already, or is queued for a concurrency limit, its run is about to begin: this returns `true` and adds no run.
        ///
        /// Returns `false` if the job has ended or is running, or if its [`until`](crate::Repeat::until) has passed.
        pub fn trigger_now(&self) -> bool {
            self.job.table().trigger_now(self.key)
        }

        /// Moves the next run to `deadline`. A paused job stays paused.
        ///
        /// After that run, a fixed rate continues from `deadline`, and a calendar from the time that was moved.
        ///
        /// Returns `false` if the job has ended, is due or is running, or if `deadline` is after its [`until`](crate::Repeat::until).
        pub fn reschedule_at(&self, deadline: Instant) -> bool {
            self.job.table().reschedule(self.key, deadline)
        }

        /// Moves the next run to `delay` from now, like [`reschedule_at`](Self::reschedule_at).
        pub fn reschedule_after(&self, delay: Duration) -> bool {
            let now = self.job.table().timer.now();
            self.reschedule_at(saturating_add(now, delay))
        }

        /// Makes a repeating job follow `schedule` from now on. A paused job stays paused.
        ///
        /// Returns `false` if the job runs once, has ended, is due or is running, or if the schedule has no time left before the job's
        /// [`until`](crate::Repeat::until).
        ///
        /// # Examples
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
        pub fn reschedule_by_calendar(&self, schedule: waterwheel_cron::Schedule) -> bool {
            self.job.table().reschedule_by_calendar(self.key, schedule)
        }

        /// Returns whether the job is a repeating job. `false` once it has ended.
        #[must_use]
        pub fn is_periodic(&self) -> bool {
            self.job.table().is_periodic(self.key)
        }

        /// Returns whether the job has ended: no run is in progress, and none will begin.
        #[must_use]
        pub fn is_done(&self) -> bool {
            self.job.table().is_done(self.key)
        }

        /// Returns whether the job was cancelled: by a handle or a control, from inside, or by a shutdown. A run may still be in progress.
        #[must_use]
        pub fn is_cancelled(&self) -> bool {
            self.job.is_cancelled()
        }

        /// Returns whether a run of the job is in progress, that is, its closure was called.
        #[must_use]
        pub fn is_running(&self) -> bool {
            self.job.table().is_running(self.key)
        }

        /// Returns whether the job is paused.
        #[must_use]
        pub fn is_paused(&self) -> bool {
            self.job.table().is_paused(self.key)
        }

        /// Returns when the next run is due. `None` while a run is in progress, while the job is paused, and once it has ended.
        #[must_use]
        pub fn next_run(&self) -> Option<Instant> {
            self.job.table().next_run(self.key)
        }

        /// Returns the time until the next run, or zero if it is due. `None` whenever [`next_run`](Self::next_run) is.
        #[must_use]
        pub fn time_left(&self) -> Option<Duration> {
            let next = self.next_run()?;
            Some(next.saturating_duration_since(self.job.table().timer.now()))
        }

        /// Returns how many runs of the job have ended. A run that is retried counts once.
        #[must_use]
        pub fn runs(&self) -> u64 {
            self.job.runs()
        }

        /// Returns the error message of the last run that failed. `None` if no run has failed.
        #[must_use]
        pub fn last_error(&self) -> Option<Arc<str>> {
            self.job.last_error()
        }
    };
}

/// A handle of a submitted job, to await its result, and to cancel, pause, move and inspect it.
///
/// When awaited, the handle yields the value of the job, or a [`JobError`]. The handle of a repeating job yields
/// `Ok(())` after its last run. If the job is [cancelled](JobHandle::cancel) during a run, the handle waits for the end
/// of that run.
///
/// Dropping the handle detaches the job: it continues, and its value is dropped as soon as there is one.
///
/// While one task awaits the handle, other tasks can reach the job via a [`JobControl`], which [`control`](JobHandle::control) returns.
///
/// # Cancel safety
///
/// Awaiting `&mut handle` is cancel safe.
///
/// # Panics
///
/// Like tokio's `JoinHandle`, the handle panics if it is polled after it has yielded the result.
///
/// # Examples
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
#[must_use = "dropping the handle detaches the job, which continues; call `drop` if intended"]
pub struct JobHandle<T> {
    job: Arc<dyn TypedJob<T>>,
    key: Key,
    id: JobId,
}

impl<T> JobHandle<T> {
    pub(crate) fn new(job: Arc<dyn TypedJob<T>>, key: Key, id: JobId) -> JobHandle<T> {
        JobHandle { job, key, id }
    }

    /// Returns a control of the job, for other tasks to use while one awaits the handle.
    #[must_use]
    pub fn control(&self) -> JobControl {
        JobControl::new(Arc::clone(&self.job).upcast(), self.key, self.id)
    }

    controls!();
}

impl<T> Drop for JobHandle<T> {
    /// Detaches the job, and drops its result, which a control would otherwise keep alive.
    fn drop(&mut self) {
        // Otherwise this is the last reference, and the result is dropped with the job.
        if Arc::strong_count(&self.job) > 1 {
            self.job.detach();
        }
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
            .field("id", &self.id)
            .field("is_done", &self.is_done())
            .field("runs", &self.runs())
            .finish_non_exhaustive()
    }
}

/// Controls a job without awaiting it: cancels, pauses, moves and inspects it, while a task awaits the [`JobHandle`].
///
/// Created by [`JobHandle::control`](crate::JobHandle::control), [`Scheduler::job`](crate::Scheduler::job) and
/// [`Scheduler::find`](crate::Scheduler::find).
///
/// A control is cheap to clone and has all methods of the handle. It relates to the handle as tokio's
/// [`AbortHandle`](tokio::task::AbortHandle) does to the `JoinHandle`: it does not yield the value of the job, but
/// [`ended`](JobControl::ended) waits for the end of the job. Dropping a control has no effect. Once the job has ended, a
/// control keeps neither its closure nor its value alive.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::collections::HashMap;
/// use std::time::Duration;
/// use waterwheel_schedule::{JobControl, Scheduler};
///
/// let scheduler = Scheduler::new();
/// let mut orders: HashMap<u32, JobControl> = HashMap::new();
///
/// let closing = scheduler.after(Duration::from_secs(1800)).run(|_| async { println!("closed") });
/// orders.insert(7, closing.control());
/// let watch = tokio::spawn(closing); // a task awaits the handle
///
/// // Elsewhere: the order is paid.
/// assert!(orders.remove(&7).unwrap().cancel());
/// assert!(watch.await.unwrap().unwrap_err().is_cancelled());
/// # }
/// ```
#[derive(Clone)]
pub struct JobControl {
    job: Arc<dyn Job>,
    key: Key,
    id: JobId,
}

impl JobControl {
    pub(crate) fn new(job: Arc<dyn Job>, key: Key, id: JobId) -> JobControl {
        JobControl { job, key, id }
    }

    /// Waits until the job has ended for good, however it ended: no run is in progress, and none will begin. The handle then
    /// has its result, and the closure is dropped. Any number of tasks may wait.
    ///
    /// The future borrows nothing and keeps nothing of the job alive. If the job has ended, it completes immediately. A run
    /// that waits for the end of its own job waits forever.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
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
    /// let report = scheduler.every(Duration::from_millis(5)).name("report").run(|_| async {});
    /// let control = report.control();
    /// drop(report); // detached: it continues
    ///
    /// // An operator stops the report, and waits until its last run is over.
    /// control.cancel();
    /// control.ended().await;
    /// assert!(control.is_done());
    /// # }
    /// ```
    pub fn ended(&self) -> impl Future<Output = ()> + Send + Sync + use<> {
        self.job.ended().cancelled_owned()
    }

    controls!();
}

impl fmt::Debug for JobControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobControl")
            .field("id", &self.id)
            .field("is_done", &self.is_done())
            .field("runs", &self.runs())
            .finish_non_exhaustive()
    }
}
