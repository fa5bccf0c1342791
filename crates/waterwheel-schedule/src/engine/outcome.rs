use std::error::Error;

/// What a job may give: nothing, or a result.
///
/// It is implemented for `()` and for each `Result<T, E>` whose error can be boxed, such as those of std, of `anyhow` and strings. So an
/// error of a job cannot be overlooked: [`OnError`](crate::OnError) and [`JobHandle`](crate::JobHandle) see it. A job that gives a value
/// and never fails gives `Ok::<_, std::convert::Infallible>(value)`.
#[diagnostic::on_unimplemented(
    message = "a job gives `()` or a `Result`, and not `{Self}`",
    note = "a value that cannot fail: `Ok::<_, std::convert::Infallible>(value)`"
)]
pub trait Outcome {
    /// What the job's handle gives.
    type Value: Send + 'static;

    /// The value, or why there is none.
    ///
    /// # Errors
    ///
    /// The job's own.
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
