//! What a job does: a closure that gives a future, called once or for each run, or a closure that blocks.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, ready};

use pin_project_lite::pin_project;
use tokio::task::JoinHandle;

use super::{Context, Outcome};
use crate::error::{JobError, Panic};
use crate::sync::lock;

/// A closure and what it gives, without their types.
pub(crate) trait Work: Send + 'static {
    type Value: Send + 'static;
    type Running: Future<Output = Result<Self::Value, JobError>> + Send + 'static;

    /// Whether a run that has begun goes on when its future is dropped.
    const BLOCKS: bool;

    /// Whether there is one run at most.
    const IS_ONCE: bool;

    /// Begins a run. Work for one run leaves `None`.
    fn begin(work: &mut Option<Self>, context: Context) -> Self::Running
    where
        Self: Sized;
}

/// An async closure for one run.
pub(crate) struct RunOnce<F>(pub(crate) F);

/// An async closure for any number of runs.
pub(crate) struct RunAgain<F>(pub(crate) F);

/// A closure for one run that blocks its thread.
pub(crate) struct BlockOnce<F>(pub(crate) F);

/// A closure for any number of runs that block their thread. It is with the thread while it runs, and here in between.
pub(crate) struct BlockAgain<F>(Arc<Mutex<Option<F>>>);

impl<F> BlockAgain<F> {
    pub(crate) fn new(job: F) -> BlockAgain<F> {
        BlockAgain(Arc::new(Mutex::new(Some(job))))
    }
}

const EMPTY: &str = "work for one run is begun once";

impl<F, R> Work for RunOnce<F>
where
    F: FnOnce(Context) -> R + Send + 'static,
    R: Future<Output: Outcome> + Send + 'static,
{
    type Value = <R::Output as Outcome>::Value;
    type Running = Converted<R>;
    const BLOCKS: bool = false;
    const IS_ONCE: bool = true;

    fn begin(work: &mut Option<Self>, context: Context) -> Converted<R> {
        Converted {
            future: work.take().expect(EMPTY).0(context),
        }
    }
}

impl<F, R> Work for RunAgain<F>
where
    F: FnMut(Context) -> R + Send + 'static,
    R: Future<Output: Outcome> + Send + 'static,
{
    type Value = <R::Output as Outcome>::Value;
    type Running = Converted<R>;
    const BLOCKS: bool = false;
    const IS_ONCE: bool = false;

    fn begin(work: &mut Option<Self>, context: Context) -> Converted<R> {
        Converted {
            future: (work.as_mut().expect(EMPTY).0)(context),
        }
    }
}

impl<F, R> Work for BlockOnce<F>
where
    F: FnOnce(Context) -> R + Send + 'static,
    R: Outcome + Send + 'static,
{
    type Value = R::Value;
    type Running = Blocking<R>;
    const BLOCKS: bool = true;
    const IS_ONCE: bool = true;

    fn begin(work: &mut Option<Self>, context: Context) -> Blocking<R> {
        let BlockOnce(work) = work.take().expect(EMPTY);
        Blocking(tokio::task::spawn_blocking(move || work(context)))
    }
}

impl<F, R> Work for BlockAgain<F>
where
    F: FnMut(Context) -> R + Send + 'static,
    R: Outcome + Send + 'static,
{
    type Value = R::Value;
    type Running = Blocking<R>;
    const BLOCKS: bool = true;
    const IS_ONCE: bool = false;

    fn begin(work: &mut Option<Self>, context: Context) -> Blocking<R> {
        let place = Arc::clone(&work.as_ref().expect(EMPTY).0);
        let mut work = lock(&place).take().expect("runs of a job do not overlap");
        Blocking(tokio::task::spawn_blocking(move || {
            let result = catch_unwind(AssertUnwindSafe(|| work(context)));
            *lock(&place) = Some(work);
            result.unwrap_or_else(|panic| resume_unwind(panic))
        }))
    }
}

pin_project! {
    /// A job's future, with its output as a result.
    pub(crate) struct Converted<R> {
        #[pin]
        future: R,
    }
}

impl<R: Future<Output: Outcome>> Future for Converted<R> {
    type Output = Result<<R::Output as Outcome>::Value, JobError>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let output = ready!(self.project().future.poll(cx));
        Poll::Ready(output.into_result().map_err(JobError::Failed))
    }
}

/// A run on a thread that may block.
pub(crate) struct Blocking<R>(JoinHandle<R>);

impl<R: Outcome> Future for Blocking<R> {
    type Output = Result<R::Value, JobError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(Pin::new(&mut self.0).poll(cx)) {
            Ok(output) => output.into_result().map_err(JobError::Failed),
            Err(error) => Err(match error.try_into_panic() {
                Ok(panic) => JobError::Panicked(Box::new(Panic::new(panic))),
                // The runtime ended before the run began.
                Err(_) => JobError::Shutdown,
            }),
        })
    }
}
