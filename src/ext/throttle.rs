use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pin_project_lite::pin_project;
use tokio::time::Duration;

use crate::time::{Sleep, sleep};

pin_project! {
    /// The stream of [`StreamExt::throttle`](super::StreamExt::throttle).
    ///
    /// It is not fused: after its end it polls its stream again if it is polled.
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

    /// The stream that is throttled.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// The stream that is throttled. An item that is taken from it directly does not count.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The stream, no longer throttled.
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
