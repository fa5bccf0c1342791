//! The response futures of the services. Requires the feature `tower`.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::task::coop;

use super::limit::Limit;
use super::{BoxError, LimitedBody};
use crate::error::Elapsed;

pub use super::respond::RespondFuture;

pin_project! {
    /// The future of [`Timeout`](crate::tower::Timeout). Requires the feature `tower`.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        inner: Limited<F>,
    }
}

impl<F> ResponseFuture<F> {
    pub(super) fn new(inner: F, limit: Limit) -> ResponseFuture<F> {
        let inner = Limited::new(inner, limit);
        ResponseFuture { inner }
    }

    pub(super) fn refused(error: impl Into<BoxError>) -> ResponseFuture<F> {
        let inner = Limited::refused(error.into(), Limit::NEVER);
        ResponseFuture { inner }
    }
}

impl<F, T, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.project()
            .inner
            .poll(context)
            .map_ok(|(response, _)| response)
    }
}

pin_project! {
    /// The future of [`HttpTimeout`](crate::tower::HttpTimeout), [`ServerDeadline`](crate::tower::ServerDeadline) and
    /// [`ClientDeadline`](crate::tower::ClientDeadline). Requires the feature `tower`.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct HttpResponseFuture<F> {
        #[pin]
        inner: Limited<F>,
    }
}

impl<F> HttpResponseFuture<F> {
    pub(super) fn new(inner: F, limit: Limit) -> HttpResponseFuture<F> {
        let inner = Limited::new(inner, limit);
        HttpResponseFuture { inner }
    }

    pub(super) fn refused(error: impl Into<BoxError>) -> HttpResponseFuture<F> {
        let inner = Limited::refused(error.into(), Limit::NEVER);
        HttpResponseFuture { inner }
    }

    /// The deadline of this limit has passed before the call.
    pub(super) fn too_late(limit: Limit) -> HttpResponseFuture<F> {
        let inner = Limited::refused(Elapsed::new(false).into(), limit);
        HttpResponseFuture { inner }
    }
}

impl<F, B, E> Future for HttpResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
    E: Into<BoxError>,
{
    type Output = Result<Response<LimitedBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.project().inner.poll(context);
        polled.map_ok(|(response, limit)| response.map(|body| LimitedBody::new(body, limit)))
    }
}

pin_project! {
    /// A future with a limit, which it hands on to the response.
    #[derive(Debug)]
    struct Limited<F> {
        // `None` if it was refused, cut, or is done.
        #[pin]
        inner: Option<F>,
        limit: Limit,
        // Why the inner service was not called. It is returned once the limit is not left to the caller's scope.
        refusal: Option<BoxError>,
    }
}

impl<F> Limited<F> {
    fn new(inner: F, limit: Limit) -> Limited<F> {
        Limited {
            inner: Some(inner),
            limit,
            refusal: None,
        }
    }

    fn refused(error: BoxError, limit: Limit) -> Limited<F> {
        Limited {
            inner: None,
            limit,
            refusal: Some(error),
        }
    }
}

impl<F, T, E> Future for Limited<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<(T, Limit), BoxError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(inner) = this.inner.as_mut().as_pin_mut() else {
            if this.refusal.is_some() && this.limit.is_left_to_scope() {
                // The scope wakes the task when it is due.
                return Poll::Pending;
            }
            let refusal = this.refusal.take();
            return Poll::Ready(Err(refusal.expect(
                "a response future of `waterwheel::tower` was polled after completion: do not poll it again once it is ready",
            )));
        };
        let had_budget = coop::has_budget_remaining();
        if let Poll::Ready(result) = this.limit.within(|| inner.poll(context)) {
            this.inner.set(None);
            let limit = std::mem::replace(this.limit, Limit::NEVER);
            return Poll::Ready(match result {
                Ok(response) => Ok((response, limit)),
                Err(error) => Err(error.into()),
            });
        }
        this.limit.poll(had_budget, context).map(|elapsed| {
            this.inner.set(None);
            *this.limit = Limit::NEVER;
            Err(elapsed.into())
        })
    }
}
