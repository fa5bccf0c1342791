use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pin_project_lite::pin_project;
use tokio::task::coop;
use tokio::time::{Duration, Instant};

use crate::error::Elapsed;
use crate::time::{Sleep, poll_delay, sleep};

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

pin_project! {
    /// The stream returned by [`StreamExt::timeout`](super::StreamExt::timeout).
    ///
    /// The stream is fused: after its end it keeps returning `None`.
    #[must_use = "streams do nothing unless polled"]
    #[derive(Debug)]
    pub struct Timeout<S> {
        // `None` from its end on: dropped then, as in tokio-stream.
        #[pin]
        stream: Option<S>,
        // `None` from the end of the stream on: cancelled then.
        delay: Option<Sleep>,
        duration: Duration,
        // Whether an `Err` may come before the next item.
        is_limited: bool,
    }
}

impl<S> Timeout<S> {
    #[track_caller]
    pub(super) fn new(stream: S, duration: Duration) -> Timeout<S> {
        Timeout {
            stream: Some(stream),
            delay: Some(sleep(duration)),
            duration,
            is_limited: true,
        }
    }
}

impl<S: Stream> Stream for Timeout<S> {
    type Item = Result<S::Item, Elapsed>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let stream = this.stream.as_mut().as_pin_mut();
        let (Some(stream), Some(delay)) = (stream, this.delay.as_mut()) else {
            return Poll::Ready(None);
        };
        let had_budget = coop::has_budget_remaining();
        match stream.poll_next(context) {
            Poll::Ready(Some(item)) => {
                delay.restart(*this.duration);
                *this.is_limited = true;
                return Poll::Ready(Some(Ok(item)));
            }
            Poll::Ready(None) => {
                *this.delay = None;
                this.stream.set(None);
                return Poll::Ready(None);
            }
            Poll::Pending => {}
        }
        if !*this.is_limited {
            return Poll::Pending;
        }
        let elapsed = ready!(poll_delay(delay, had_budget, context));
        *this.is_limited = false;
        Poll::Ready(Some(Err(elapsed)))
    }

    /// An `Err` may come before each item and after the last.
    fn size_hint(&self) -> (usize, Option<usize>) {
        let Some(stream) = &self.stream else {
            return (0, Some(0));
        };
        let (least, most) = stream.size_hint();
        let most = most.and_then(|most| most.checked_mul(2)?.checked_add(1));
        (least, most)
    }
}
