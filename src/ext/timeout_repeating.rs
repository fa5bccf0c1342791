use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pin_project_lite::pin_project;
use tokio::task::coop;

use crate::error::Elapsed;
use crate::time::{Interval, poll_limit};

pin_project! {
    /// The stream returned by [`StreamExt::timeout_repeating`](super::StreamExt::timeout_repeating).
    ///
    /// The stream is fused: after its end it keeps returning `None`.
    #[must_use = "streams do nothing unless polled"]
    #[derive(Debug)]
    pub struct TimeoutRepeating<S> {
        // `None` from its end on.
        #[pin]
        stream: Option<S>,
        // `None` from the end of the stream on, and when the `Err` has been returned that says that the timer was stopped.
        interval: Option<Interval>,
    }
}

impl<S> TimeoutRepeating<S> {
    pub(super) fn new(stream: S, interval: Interval) -> TimeoutRepeating<S> {
        TimeoutRepeating {
            stream: Some(stream),
            interval: Some(interval),
        }
    }
}

impl<S: Stream> Stream for TimeoutRepeating<S> {
    type Item = Result<S::Item, Elapsed>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let Some(stream) = this.stream.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        let had_budget = coop::has_budget_remaining();
        match stream.poll_next(context) {
            Poll::Ready(Some(item)) => {
                if let Some(interval) = this.interval {
                    interval.reset();
                }
                return Poll::Ready(Some(Ok(item)));
            }
            Poll::Ready(None) => {
                *this.interval = None;
                this.stream.set(None);
                return Poll::Ready(None);
            }
            Poll::Pending => {}
        }
        let Some(interval) = this.interval else {
            return Poll::Pending;
        };
        let tick = poll_fn(|context| Pin::new(&mut *interval).poll_next(context));
        let was_stopped = ready!(poll_limit(tick, had_budget, context)).is_none();
        if was_stopped {
            interval.assert_was_stopped();
            *this.interval = None;
        }
        Poll::Ready(Some(Err(Elapsed::new(was_stopped))))
    }

    /// There is no upper bound, since any number of `Err` may come before each item.
    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.stream {
            Some(stream) => (stream.size_hint().0, None),
            None => (0, Some(0)),
        }
    }
}
