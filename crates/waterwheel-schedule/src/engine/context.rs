use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::table::{Job, Run, Table, cancelled_token};
use crate::info::JobId;

/// The context of a run, which is passed to the job's closure.
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
/// let job = scheduler.every(Duration::from_millis(2)).run(|context| async move {
///     println!("run {} was due at {:?}", context.run(), context.scheduled());
///     if context.run() == 3 {
///         context.cancel(); // this run is the last
///     }
/// });
/// assert!(job.await.unwrap_err().is_cancelled());
/// # }
/// ```
#[derive(Clone)]
pub struct Context {
    job: Arc<dyn Job>,
    run: Run,
}

impl Context {
    pub(crate) fn new(job: Arc<dyn Job>, run: Run) -> Context {
        Context { job, run }
    }

    /// Returns the id of the job.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.run.id
    }

    /// Returns when the run was due, including its jitter. The run never begins earlier.
    #[must_use]
    pub fn scheduled(&self) -> Instant {
        self.run.scheduled
    }

    /// Returns the wall-clock time that the run is for: the time of the calendar, or the time given to
    /// [`at_wall`](crate::Scheduler::at_wall).
    ///
    /// It tells a weekly report which Tuesday it is for, however late the run begins. Jitter, a retry, a pause and
    /// [`reschedule_at`](crate::JobHandle::reschedule_at) do not change it. A run that coalesces several missed times
    /// ([`Misfire::Once`](crate::Misfire::Once)) is for the latest of them.
    ///
    /// Returns `None`
    ///
    /// - for a job that does not follow the wall clock;
    /// - for a run that was [triggered](crate::JobHandle::trigger_now) in addition to the calendar;
    /// - for a first run set by [`first_at`](crate::Repeat::first_at) or [`first_after`](crate::Repeat::first_after);
    /// - once the run has ended.
    ///
    /// This takes the scheduler's lock.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::{Duration, SystemTime};
    /// use waterwheel_schedule::Scheduler;
    ///
    /// let scheduler = Scheduler::new();
    /// let time = SystemTime::now() + Duration::from_millis(10);
    /// let job = scheduler.at_wall(time).jitter(Duration::from_millis(5)).run(move |context| async move {
    ///     assert_eq!(context.scheduled_wall(), Some(time));
    /// });
    /// job.await.unwrap();
    /// # }
    /// ```
    #[must_use]
    pub fn scheduled_wall(&self) -> Option<SystemTime> {
        let table = self.job.table();
        table.wall_of_run(self.run.key, self.run.number)
    }

    /// Returns the number of the run, counted from 1. A run that is retried keeps its number.
    #[must_use]
    pub fn run(&self) -> u64 {
        self.run.number
    }

    /// Returns the number of the attempt at this run, counted from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.run.attempt
    }

    /// Returns the name that the job was submitted with.
    #[must_use]
    pub fn name(&self) -> Option<Arc<str>> {
        self.job.table().name_of(self.run.key)
    }

    /// Returns the cancellation token of this run.
    ///
    /// The token is cancelled when the run exceeds its time limit, when the job is cancelled, and by
    /// [`Scheduler::shutdown_now`](crate::Scheduler::shutdown_now). A long run should check it, or wait for it while it
    /// works, and end early. [`cancelled`](Context::cancelled) waits for it.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        if self.job.runs() >= self.run.number {
            // By now, the job's token is that of the next run.
            return cancelled_token();
        }
        self.job.token()
    }

    /// Waits until the [token](Context::token) of this run is cancelled: the job is cancelled, the scheduler is shut down by
    /// [`shutdown_now`](crate::Scheduler::shutdown_now), or the run exceeds its time limit.
    ///
    /// The future borrows nothing. If the run has ended, it completes immediately; one that waits when the run ends by itself
    /// does not complete, so a task that outlives the run must not wait for it alone.
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
    /// use tokio::time::sleep;
    /// use waterwheel_schedule::Scheduler;
    ///
    /// let scheduler = Scheduler::new();
    /// let upload = scheduler.after(Duration::ZERO).run_value(|context| async move {
    ///     tokio::select! {
    ///         () = sleep(Duration::from_secs(3600)) => "uploaded",
    ///         () = context.cancelled() => "stopped halfway",
    ///     }
    /// });
    /// sleep(Duration::from_millis(20)).await;
    /// upload.cancel();
    /// assert_eq!(upload.await.unwrap(), "stopped halfway");
    /// # }
    /// ```
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + Sync + use<> {
        self.token().cancelled_owned()
    }

    /// Cancels the job from inside, like [`JobHandle::cancel`](crate::JobHandle::cancel): this run is its last.
    pub fn cancel(&self) -> bool {
        self.job.table().cancel(self.run.key)
    }

    /// The run that this context is passed to.
    pub(crate) fn which(&self) -> &Run {
        &self.run
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        self.job.table()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("id", &self.id())
            .field("scheduled", &self.scheduled())
            .field("run", &self.run())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
