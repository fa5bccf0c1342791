//! What does a handle wait for? The result of a job, whatever its closure.

use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use super::cell::{Cell, Stored};
use super::job::Job;
use super::work::Work;
use crate::error::JobError;

/// What a handle knows of a job: what its result is.
pub(crate) trait Awaited<T>: Job {
    fn poll_result(&self, cx: &mut TaskContext<'_>) -> Poll<Result<T, JobError>>;

    /// The handle is gone: the result is dropped, now or when it is there.
    fn detach(&self);

    /// The job, whatever its result is.
    fn as_job(self: Arc<Self>) -> Arc<dyn Job>;
}

impl<W: Work> Awaited<W::Value> for Cell<W> {
    fn poll_result(&self, cx: &mut TaskContext<'_>) -> Poll<Result<W::Value, JobError>> {
        // The clone of a waker is foreign code, so it is made without the lock.
        let mut fresh: Option<Waker> = None;
        loop {
            let mut slot = self.slot();
            match std::mem::replace(&mut slot.result, Stored::Taken) {
                Stored::There(result) => return Poll::Ready(result),
                Stored::Taken => {
                    drop(slot);
                    panic!("`JobHandle` polled after it had yielded its result")
                }
                Stored::NotYet => slot.result = Stored::NotYet,
            }
            let is_known = slot
                .awaiting
                .as_ref()
                .is_some_and(|waker| waker.will_wake(cx.waker()));
            if is_known {
                return Poll::Pending;
            }
            if let Some(waker) = fresh.take() {
                let before = slot.awaiting.replace(waker);
                drop(slot);
                drop(before);
                return Poll::Pending;
            }
            drop(slot);
            fresh = Some(cx.waker().clone());
        }
    }

    fn detach(&self) {
        let mut slot = self.slot();
        let unused = std::mem::replace(&mut slot.result, Stored::Taken);
        let awaiting = slot.awaiting.take();
        drop(slot);
        drop(unused);
        drop(awaiting);
    }

    fn as_job(self: Arc<Self>) -> Arc<dyn Job> {
        self
    }
}
