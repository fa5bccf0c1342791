//! The closure of a job, async or blocking, called once or for each run, and the types that it may return.

use std::error::Error;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use pin_project_lite::pin_project;
use tokio::task::{JoinHandle, spawn_blocking};

use super::context::Context;
use crate::error::{JobError, Panic};

/// The output of a job: nothing, or a result.
///
/// This trait is implemented for `()`, and for every `Result<T, E>` whose error can be boxed, such as the errors of std
/// and `anyhow`, and strings. An error of a job therefore cannot go unnoticed: [`OnError`](crate::OnError) and
/// [`JobHandle`](crate::JobHandle) see it.
///
/// A job that runs once and returns some other type is submitted by [`Once::run_value`](crate::Once::run_value), which
/// takes any type. A job with retries that never fails returns `Ok::<_, std::convert::Infallible>(value)`.
#[diagnostic::on_unimplemented(
    message = "a job must return `()` or a `Result`, not `{Self}`",
    note = "`run_value` and `run_blocking_value` submit a job that runs once and returns a value of any type",
    note = "with retries, a job that never fails can return `Ok::<_, std::convert::Infallible>(value)`"
)]
pub trait Outcome {
    /// The value that the job's handle yields.
    type Value: Send + 'static;

    /// Converts the output into a value or an error.
    ///
    /// # Errors
    ///
    /// Returns the error of the job.
    fn into_result(self) -> Result<Self::Value, Box<dyn Error + Send + Sync>>;
}

impl Outcome for () {
    type Value = ();

    fn into_result(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

impl<T: Send + 'static, E: Into<Box<dyn Error + Send + Sync>>> Outcome for Result<T, E> {
    type Value = T;

    fn into_result(self) -> Result<T, Box<dyn Error + Send + Sync>> {
        self.map_err(Into::into)
    }
}

/// Any value as the outcome of a job, even a `Result`, for [`Once::run_value`](crate::Once::run_value).
pub(crate) struct Plain<T>(pub(crate) T);

impl<T: Send + 'static> Outcome for Plain<T> {
    type Value = T;

    fn into_result(self) -> Result<T, Box<dyn Error + Send + Sync>> {
        Ok(self.0)
    }
}

pin_project! {
    /// A future whose output is any value.
    pub(crate) struct ToPlain<R> {
        #[pin]
        future: R,
    }
}

impl<R> ToPlain<R> {
    pub(crate) fn new(future: R) -> ToPlain<R> {
        ToPlain { future }
    }
}

impl<R: Future> Future for ToPlain<R> {
    type Output = Plain<R::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Plain<R::Output>> {
        self.project().future.poll(cx).map(Plain)
    }
}

/// A closure of one of four kinds.
pub(crate) trait Work: Send + 'static {
    type Value: Send + 'static;
    /// Yields `None` if the run was withdrawn before the closure was called.
    type Running: Future<Output = Option<Result<Self::Value, JobError>>> + Send + 'static;

    /// Whether a run continues when its future is dropped, since it is on a thread of its own.
    const BLOCKS: bool;

    /// Whether there is at most one run.
    const IS_ONCE: bool;

    /// Begins a run: takes the closure from its holder and calls it, or lets a thread do so. `None` if the run was withdrawn.
    fn begin(holder: &Arc<impl Holder<Self>>, context: Context) -> Option<Self::Running>
    where
        Self: Sized;
}

/// The owner of the closure between two runs.
pub(crate) trait Holder<W>: Send + Sync + 'static {
    /// Marks the run as begun and returns the closure, to be called at once. `None` if the run was withdrawn or the job has ended meanwhile.
    fn begin_run(&self, context: &Context) -> Option<W>;

    /// Returns the closure for the next run.
    fn give_back(&self, work: W);
}

/// An async closure for one run.
pub(crate) struct AsyncOnce<F>(pub(crate) F);

/// An async closure for any number of runs.
pub(crate) struct AsyncRepeat<F>(pub(crate) F);

/// A blocking closure for one run.
pub(crate) struct BlockingOnce<F>(pub(crate) F);

/// A blocking closure for any number of runs. It is on the blocking thread during a run, and with its holder in between.
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

/// Calls a closure, and gives it back for the next run even if it panics.
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
    /// The future of an async closure, with its output as a result.
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

/// A run on a blocking thread.
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
