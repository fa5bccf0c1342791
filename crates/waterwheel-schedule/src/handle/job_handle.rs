use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use waterwheel::wheel::Key;

use super::JobControl;
use super::controls::controls;
use crate::engine::awaited::Awaited;
use crate::error::JobError;

/// A job that was submitted: await its result, cancel it, look at it.
///
/// Awaited, it gives what the job gave, or a [`JobError`]. A job that runs more than once gives `Ok(())` when it has had its last run.
/// Awaiting `&mut handle` is cancel safe. Once it has given the result, it panics if it is polled again, as tokio's `JoinHandle`.
///
/// Dropping it detaches: the job goes on, and its value is dropped when it is there.
///
/// While one task awaits it, others reach the job by a [`JobControl`], which [`control`](JobHandle::control) gives.
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

    /// A control of the job, beside the handle: for another task, while this one awaits the handle.
    #[must_use]
    pub fn control(&self) -> JobControl {
        JobControl::new(Arc::clone(&self.job).as_job(), self.key)
    }

    controls!();
}

impl<T> Drop for JobHandle<T> {
    /// Lets go of the result, which a control would keep.
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
            .field("is_done", &self.is_done())
            .field("runs", &self.runs())
            .finish_non_exhaustive()
    }
}
