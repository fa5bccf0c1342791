use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use pin_project_lite::pin_project;

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

/// Any value, for a job that runs once: a `Result` is one like any other.
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
