//! What does a handle wait for? The result of a job, whatever its closure.

use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use super::job::Job;
use super::job_cell::{JobCell, JobResult};
use super::work::Work;
use crate::error::JobError;

/// What a handle knows of a job: what its result is.
pub(crate) trait TypedJob<T>: Job {
    fn poll_result(&self, cx: &mut TaskContext<'_>) -> Poll<Result<T, JobError>>;

    /// The handle is gone: the result is dropped, now or when it is there.
    fn detach(&self);

    /// The job, whatever its result is.
    fn upcast(self: Arc<Self>) -> Arc<dyn Job>;
}

impl<W: Work> TypedJob<W::Value> for JobCell<W> {
    fn poll_result(&self, cx: &mut TaskContext<'_>) -> Poll<Result<W::Value, JobError>> {
        // The clone of a waker is foreign code, so it is made without the lock.
        let mut fresh: Option<Waker> = None;
        loop {
            let mut state = self.state();
            match std::mem::replace(&mut state.result, JobResult::Taken) {
                JobResult::Ready(result) => return Poll::Ready(result),
                JobResult::Taken => {
                    drop(state);
                    panic!("`JobHandle` polled after it had yielded its result")
                }
                JobResult::Pending => state.result = JobResult::Pending,
            }
            let is_known = state
                .awaiting
                .as_ref()
                .is_some_and(|waker| waker.will_wake(cx.waker()));
            if is_known {
                return Poll::Pending;
            }
            if let Some(waker) = fresh.take() {
                let before = state.awaiting.replace(waker);
                drop(state);
                drop(before);
                return Poll::Pending;
            }
            drop(state);
            fresh = Some(cx.waker().clone());
        }
    }

    fn detach(&self) {
        let mut state = self.state();
        let unused = std::mem::replace(&mut state.result, JobResult::Taken);
        let awaiting = state.awaiting.take();
        drop(state);
        drop(unused);
        drop(awaiting);
    }

    fn upcast(self: Arc<Self>) -> Arc<dyn Job> {
        self
    }
}
