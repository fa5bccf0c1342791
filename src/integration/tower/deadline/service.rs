use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tokio::time::Duration;
use tower_service::Service;

use super::DeadlineLayer;
use crate::integration::tower::future::HttpResponseFuture;
use crate::integration::tower::limit::{Limit, remaining, timer_of};
use crate::integration::tower::{BoxError, LimitedBody};

/// The service of [`DeadlineLayer`]. Requires the feature `tower`.
#[derive(Debug, Clone)]
pub struct ServerDeadline<S> {
    inner: S,
    layer: DeadlineLayer,
}

impl<S> ServerDeadline<S> {
    pub(super) const fn with(inner: S, layer: DeadlineLayer) -> ServerDeadline<S> {
        ServerDeadline { inner, layer }
    }

    /// Returns a reference to the inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns a mutable reference to the inner service.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Consumes this service, and returns the inner service without deadlines.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, R, B> Service<Request<R>> for ServerDeadline<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body,
{
    type Response = Response<LimitedBody<B>>;
    type Error = BoxError;
    type Future = HttpResponseFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let timer = timer_of(self.layer.timer.as_ref());
        let deadline = self.layer.deadline_of(request.headers(), timer.as_ref());
        if remaining(deadline, timer.as_ref()) == Some(Duration::ZERO) {
            return HttpResponseFuture::too_late(Limit::NEVER);
        }
        match Limit::until(timer, deadline) {
            Ok(mut limit) => {
                // Around the call as well: a service may read the deadline before it makes its future.
                let future = limit.within(|| self.inner.call(request));
                HttpResponseFuture::new(future, limit)
            }
            Err(error) => HttpResponseFuture::refused(error),
        }
    }
}
