use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Scheduler;
use crate::engine::job::Job;
use crate::engine::run::Run;

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
        let state = self.job.table().state();
        state.wheel.get(self.run.key)?.name().cloned()
    }

    /// The token of this run. It is cancelled when the run takes longer than its time limit, when the job is cancelled, and by [`Scheduler::shutdown_now`]. A run that takes long looks at it, or waits for it
    /// beside its work, and ends early.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.job.token()
    }

    /// Cancels the job from inside: this run is its last. As [`JobHandle::cancel`](crate::JobHandle::cancel).
    pub fn cancel(&self) -> bool {
        self.job.table().cancel(self.run.key)
    }

    /// The job's scheduler: a job may submit others, and shut it down.
    #[must_use]
    pub fn scheduler(&self) -> Scheduler {
        Scheduler::of_table(self.job.table())
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
