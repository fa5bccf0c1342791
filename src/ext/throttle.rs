use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pin_project_lite::pin_project;
use tokio::time::Duration;

use crate::time::{Sleep, sleep};

pin_project! {
    /// The stream returned by [`StreamExt::throttle`](super::StreamExt::throttle).
    ///
    /// The stream is not fused: polling it after its end polls the inner stream again.
    #[must_use = "streams do nothing unless polled"]
    #[derive(Debug)]
    pub struct Throttle<S> {
        #[pin]
        stream: S,
        // `None` for a duration of zero.
        delay: Option<Sleep>,
        duration: Duration,
        // Whether the next item has to wait for `delay`.
        waits: bool,
    }
}

impl<S> Throttle<S> {
    #[track_caller]
    pub(super) fn new(stream: S, duration: Duration) -> Throttle<S> {
        // No closure, which would be blamed for a panic in the caller's place.
        let delay = match duration {
            Duration::ZERO => None,
            _ => Some(sleep(duration)),
        };
        Throttle {
            stream,
            delay,
            duration,
            waits: false,
        }
    }

    /// Returns a reference to the inner stream.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// Returns a mutable reference to the inner stream. An item that is taken from it directly does
    /// not count for the throttling.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Consumes the `Throttle`, and returns the inner stream.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: Stream> Stream for Throttle<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        let Some(delay) = this.delay else {
            return this.stream.poll_next(context);
        };
        if *this.waits {
            ready!(Pin::new(&mut *delay).poll(context));
            *this.waits = false;
        }
        let item = ready!(this.stream.poll_next(context));
        if item.is_some() {
            delay.restart(*this.duration);
            *this.waits = true;
        }
        Poll::Ready(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.stream.size_hint()
    }
}
