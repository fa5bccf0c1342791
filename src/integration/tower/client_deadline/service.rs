use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::ClientDeadlineLayer;
use crate::integration::tower::future::HttpResponseFuture;
use crate::integration::tower::limit::{Limit, remaining, timer_of};
use crate::integration::tower::{BoxError, LimitedBody, grpc};
use crate::rpc;

/// The service of [`ClientDeadlineLayer`]. Requires the feature `tower`.
#[derive(Debug, Clone)]
pub struct ClientDeadline<S> {
    inner: S,
    layer: ClientDeadlineLayer,
}

impl<S> ClientDeadline<S> {
    pub(super) const fn with(inner: S, layer: ClientDeadlineLayer) -> ClientDeadline<S> {
        ClientDeadline { inner, layer }
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

impl<S, R, B> Service<Request<R>> for ClientDeadline<S>
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

    fn call(&mut self, mut request: Request<R>) -> Self::Future {
        let timer = timer_of(self.layer.timer.as_ref());
        let deadline = rpc::deadline_on(timer.as_ref());
        let Some(left) = remaining(deadline, timer.as_ref()) else {
            return HttpResponseFuture::new(self.inner.call(request), Limit::NEVER);
        };
        if left.is_zero() {
            return HttpResponseFuture::too_late(Limit::passed(timer, deadline).deferring());
        }
        match Limit::until(timer, deadline) {
            Ok(limit) => {
                grpc::set_timeout(request.headers_mut(), left);
                HttpResponseFuture::new(self.inner.call(request), limit.deferring())
            }
            Err(error) => HttpResponseFuture::refused(error),
        }
    }
}
