use std::future::Future;

use tokio::time::{Duration, Instant};

/// [`timeout`](crate::timeout()) and [`timeout_at`](crate::timeout_at) as methods, for all futures.
///
/// From tokio-util's `FutureExt`.
pub trait FutureExt: Future {
    /// [`waterwheel::timeout`](crate::timeout()) as a method: the same precision, cancellation and panics.
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
    /// As [`waterwheel::timeout`](crate::timeout()).
    #[inline]
    #[track_caller]
    fn timeout(self, duration: Duration) -> crate::Timeout<Self>
    where
        Self: Sized,
    {
        crate::timeout(duration, self)
    }

    /// [`waterwheel::timeout_at`](crate::timeout_at) as a method.
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
    /// As [`timeout`](FutureExt::timeout).
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
