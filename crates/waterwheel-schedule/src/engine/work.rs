//! What a job does: a closure that gives a future, called once or for each run, or a closure that blocks.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use pin_project_lite::pin_project;
use tokio::task::{JoinHandle, spawn_blocking};

use super::{Context, Outcome};
use crate::error::{JobError, Panic};

/// A closure and what it gives, without their types.
pub(crate) trait Work: Send + 'static {
    type Value: Send + 'static;
    /// It gives nothing if the run was withdrawn before the closure was called.
    type Running: Future<Output = Option<Result<Self::Value, JobError>>> + Send + 'static;

    /// Whether a run that has begun goes on when its future is dropped.
    const BLOCKS: bool;

    /// Whether there is one run at most.
    const IS_ONCE: bool;

    /// Begins a run, which takes the work from its holder, or has a thread do that. `None` if the run was withdrawn.
    fn begin(holder: &Arc<impl Holder<Self>>, context: Context) -> Option<Self::Running>
    where
        Self: Sized;
}

/// The owner of the work between two runs.
pub(crate) trait Holder<W>: Send + Sync + 'static {
    /// The run begins: gives the work, which is to be called at once. `None` if the run was withdrawn, or the job has ended, since it was admitted.
    fn begin_run(&self, context: &Context) -> Option<W>;

    /// For the next run, if there may be one.
    fn give_back(&self, work: W);
}

/// An async closure for one run.
pub(crate) struct AsyncOnce<F>(pub(crate) F);

/// An async closure for any number of runs.
pub(crate) struct AsyncRepeat<F>(pub(crate) F);

/// A closure for one run that blocks its thread.
pub(crate) struct BlockingOnce<F>(pub(crate) F);

/// A closure for any number of runs that block their thread. It is with the thread while it runs, and in the cell in between.
pub(crate) struct BlockingRepeat<F>(pub(crate) F);

impl<F, R> Work for AsyncOnce<F>
where
    F: FnOnce(Context) -> R + Send + 'static,
    R: Future<Output: Outcome> + Send + 'static,
{
    type Value = <R::Output as Outcome>::Value;
    type Running = Converted<R>;
    const BLOCKS: bool = false;
    const IS_ONCE: bool = true;

    fn begin(holder: &Arc<impl Holder<Self>>, context: Context) -> Option<Converted<R>> {
        let AsyncOnce(work) = holder.begin_run(&context)?;
        Some(Converted {
            future: work(context),
        })
    }
}

impl<F, R> Work for AsyncRepeat<F>
where
    F: FnMut(Context) -> R + Send + 'static,
    R: Future<Output: Outcome> + Send + 'static,
{
    type Value = <R::Output as Outcome>::Value;
    type Running = Converted<R>;
    const BLOCKS: bool = false;
    const IS_ONCE: bool = false;

    fn begin(holder: &Arc<impl Holder<Self>>, context: Context) -> Option<Converted<R>> {
        let work = holder.begin_run(&context)?;
        Some(Converted {
            future: call_and_give_back(&**holder, work, |AsyncRepeat(work)| work(context)),
        })
    }
}

impl<F, R> Work for BlockingOnce<F>
where
    F: FnOnce(Context) -> R + Send + 'static,
    R: Outcome + Send + 'static,
{
    type Value = R::Value;
    type Running = Blocking<R>;
    const BLOCKS: bool = true;
    const IS_ONCE: bool = true;

    fn begin(holder: &Arc<impl Holder<Self>>, context: Context) -> Option<Blocking<R>> {
        let holder = Arc::clone(holder);
        Some(Blocking(spawn_blocking(move || {
            let BlockingOnce(work) = holder.begin_run(&context)?;
            Some(work(context))
        })))
    }
}

impl<F, R> Work for BlockingRepeat<F>
where
    F: FnMut(Context) -> R + Send + 'static,
    R: Outcome + Send + 'static,
{
    type Value = R::Value;
    type Running = Blocking<R>;
    const BLOCKS: bool = true;
    const IS_ONCE: bool = false;

    fn begin(holder: &Arc<impl Holder<Self>>, context: Context) -> Option<Blocking<R>> {
        let holder = Arc::clone(holder);
        Some(Blocking(spawn_blocking(move || {
            let work = holder.begin_run(&context)?;
            let call = |BlockingRepeat(work): &mut Self| work(context);
            Some(call_and_give_back(&*holder, work, call))
        })))
    }
}

/// Calls a closure, which is there for the next run even if it panics.
fn call_and_give_back<W, T>(
    holder: &impl Holder<W>,
    mut work: W,
    call: impl FnOnce(&mut W) -> T,
) -> T {
    let called = catch_unwind(AssertUnwindSafe(|| call(&mut work)));
    holder.give_back(work);
    called.unwrap_or_else(|panic| resume_unwind(panic))
}

pin_project! {
    /// A job's future, with its output as a result.
    pub(crate) struct Converted<R> {
        #[pin]
        future: R,
    }
}

impl<R: Future<Output: Outcome>> Future for Converted<R> {
    type Output = Option<Result<<R::Output as Outcome>::Value, JobError>>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let output = ready!(self.project().future.poll(cx));
        Poll::Ready(Some(output.into_result().map_err(JobError::Failed)))
    }
}

/// A run on a thread that may block.
pub(crate) struct Blocking<R>(JoinHandle<Option<R>>);

impl<R: Outcome> Future for Blocking<R> {
    type Output = Option<Result<R::Value, JobError>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(Pin::new(&mut self.0).poll(cx)) {
            Ok(output) => output.map(|output| output.into_result().map_err(JobError::Failed)),
            Err(error) => Some(Err(match error.try_into_panic() {
                Ok(panic) => JobError::Panicked(Box::new(Panic::new(panic))),
                // The runtime ended before the run began.
                Err(_) => JobError::Shutdown,
            })),
        })
    }
}
