use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use waterwheel::wheel::Key;

use super::JobControl;
use super::controls::controls;
use crate::engine::task::TypedJob;
use crate::error::JobError;
use crate::info::JobId;

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
        // What the job alone holds goes with it.
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
