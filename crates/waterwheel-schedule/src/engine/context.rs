use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::job::{Job, Run};
use super::table::Table;

/// What a job is handed at each run.
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

    /// When the run was due: its place on the grid and its jitter. The run is never earlier.
    #[must_use]
    pub fn scheduled(&self) -> Instant {
        self.run.scheduled
    }

    /// The time of day that the run is for: the calendar's time, or what [`at_wall`](crate::Scheduler::at_wall) was given.
    ///
    /// It says for which Tuesday a report is, however late the run begins. Jitter, a retry, a pause and
    /// [`reschedule_at`](crate::JobHandle::reschedule_at) do not change it. Of several times that were missed, a run that stands for all is for the
    /// latest ([`Missed::Once`](crate::Missed::Once)).
    ///
    /// `None` for a job by the timer alone, for a run that was [triggered](crate::JobHandle::trigger_now) beside its calendar or that is the first by
    /// [`first_at`](crate::Repeat::first_at) or [`first_after`](crate::Repeat::first_after), and as soon as the run has ended. It takes the scheduler's lock.
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

    /// The number of the run, from 1 on. A run that is tried again keeps its number.
    #[must_use]
    pub fn run(&self) -> u64 {
        self.run.number
    }

    /// Which attempt at this run it is, from 1 on.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.run.attempt
    }

    /// The name that the job was submitted with.
    #[must_use]
    pub fn name(&self) -> Option<Arc<str>> {
        self.job.table().name_of(self.run.key)
    }

    /// The token of this run. It is cancelled when the run takes longer than its time limit, when the job is cancelled, and by [`Scheduler::shutdown_now`](crate::Scheduler::shutdown_now). A run that takes long looks at it, or waits for it
    /// beside its work, and ends early.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        if self.job.runs() >= self.run.number {
            // The token is the next run's by now.
            let past = CancellationToken::new();
            past.cancel();
            return past;
        }
        self.job.token()
    }

    /// Cancels the job from inside: this run is its last. As [`JobHandle::cancel`](crate::JobHandle::cancel).
    pub fn cancel(&self) -> bool {
        self.job.table().cancel(self.run.key)
    }

    /// Which run of the job it is.
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
            .field("scheduled", &self.scheduled())
            .field("run", &self.run())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
