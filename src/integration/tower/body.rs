use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::task::coop;

use super::BoxError;
use super::limit::Limit;

pin_project! {
    /// A response body with a time limit: that of [`HttpTimeout`](crate::tower::HttpTimeout), or a deadline. Requires the feature
    /// `tower`.
    ///
    /// If the limit passes before the end of the body, the body fails with [`Elapsed`](crate::error::Elapsed), and the inner body
    /// is dropped. The inner body is polled first, and anything that ends it is returned even after the deadline: its end, an
    /// error, trailers, and data that is followed by nothing. Other data that is ready at the deadline is dropped, so that a body
    /// that always has more data is ended too.
    ///
    /// With a [`frame_timeout`](crate::tower::HttpTimeoutLayer::frame_timeout), the body also fails in this way if a frame, the
    /// trailers or the end take too long. Any frame that is ready meets that limit.
    ///
    /// All of this happens in `poll_frame`: a body that is not polled outlives its limit. A server does not poll the body for a
    /// client that has stopped reading; limit the connection as well, as described in [the module](crate::tower).
    ///
    /// With a deadline of [`rpc`](crate::rpc), that deadline is the current one while the inner body is polled.
    #[must_use = "a body does nothing unless it is polled"]
    #[derive(Debug)]
    pub struct LimitedBody<B> {
        // `None` once it was cut.
        #[pin]
        inner: Option<B>,
        limit: Limit,
    }
}

impl<B: Body> LimitedBody<B> {
    pub(super) fn new(inner: B, limit: Limit) -> LimitedBody<B> {
        // A body that has ended need not be polled, so it must not keep a timer.
        let limit = match inner.is_end_stream() {
            true => Limit::NEVER,
            false => limit,
        };
        LimitedBody {
            inner: Some(inner),
            limit,
        }
    }
}

impl<B> LimitedBody<B> {
    /// Returns a reference to the inner body, or `None` once the limit has ended it.
    pub fn get_ref(&self) -> Option<&B> {
        self.inner.as_ref()
    }

    /// Returns a mutable reference to the inner body, or `None` once the limit has ended it.
    pub fn get_mut(&mut self) -> Option<&mut B> {
        self.inner.as_mut()
    }

    /// Returns a pinned reference to the inner body, or `None` once the limit has ended it.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Option<Pin<&mut B>> {
        self.project().inner.as_pin_mut()
    }

    /// Consumes the `LimitedBody`, and returns the inner body without its limit, or `None` once the limit has ended it.
    pub fn into_inner(self) -> Option<B> {
        self.inner
    }
}

impl<B> Body for LimitedBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut this = self.project();
        let Some(mut inner) = this.inner.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        let had_budget = coop::has_budget_remaining();
        let polled = this.limit.within(|| inner.as_mut().poll_frame(context));
        let goes_on = match &polled {
            Poll::Pending => true,
            Poll::Ready(Some(Ok(frame))) => !frame.is_trailers() && !inner.is_end_stream(),
            Poll::Ready(_) => false,
        };
        if !goes_on {
            *this.limit = Limit::NEVER;
        } else {
            this.limit.await_frame(polled.is_pending());
            if let Poll::Ready(elapsed) = this.limit.poll(had_budget, context) {
                this.inner.set(None);
                *this.limit = Limit::NEVER;
                return Poll::Ready(Some(Err(elapsed.into())));
            }
        }
        polled.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Some(inner) => inner.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}
