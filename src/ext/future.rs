use std::future::Future;

use tokio::time::{Duration, Instant};

/// Adds [`timeout`](crate::timeout()) and [`timeout_at`](crate::timeout_at) to all futures as
/// methods.
///
/// The counterpart of tokio-util's `FutureExt`.
pub trait FutureExt: Future {
    /// Limits the time that this future may take, like [`waterwheel::timeout`](crate::timeout()),
    /// with the same precision, cancellation and panics.
    ///
    /// ```
    /// use waterwheel::Duration;
    /// use waterwheel::ext::FutureExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let limit = Duration::from_millis(5);
    /// assert_eq!(async { 42 }.timeout(limit).await, Ok(42));
    /// assert!(std::future::pending::<()>().timeout(limit).await.is_err());
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`waterwheel::timeout`](crate::timeout()).
    #[inline]
    #[track_caller]
    fn timeout(self, duration: Duration) -> crate::Timeout<Self>
    where
        Self: Sized,
    {
        crate::timeout(duration, self)
    }

    /// Requires this future to complete before `deadline`, like
    /// [`waterwheel::timeout_at`](crate::timeout_at).
    ///
    /// ```
    /// use waterwheel::{Duration, Instant};
    /// use waterwheel::ext::FutureExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let deadline = Instant::now() + Duration::from_millis(5);
    /// assert!(std::future::pending::<()>().timeout_at(deadline).await.is_err());
    /// assert!(Instant::now() >= deadline);
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`timeout`](FutureExt::timeout).
    #[inline]
    #[track_caller]
    fn timeout_at(self, deadline: Instant) -> crate::Timeout<Self>
    where
        Self: Sized,
    {
        crate::timeout_at(deadline, self)
    }
}

impl<F: Future + ?Sized> FutureExt for F {}
