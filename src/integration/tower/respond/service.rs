use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::way::Way;
use super::{RespondBody, RespondFuture};
use crate::integration::tower::BoxError;

/// The service of [`RespondLayer`](crate::tower::RespondLayer). Requires the feature `tower`.
#[derive(Debug, Clone)]
pub struct Respond<S> {
    inner: S,
    way: Way,
}

impl<S> Respond<S> {
    pub(super) const fn with(inner: S, way: Way) -> Respond<S> {
        Respond { inner, way }
    }

    /// Returns a reference to the inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns a mutable reference to the inner service.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Consumes this service, and returns the inner service, whose errors are not changed.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, R, B> Service<Request<R>> for Respond<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body,
{
    type Response = Response<RespondBody<B>>;
    type Error = BoxError;
    type Future = RespondFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let way = self.way.of_request(request.headers());
        RespondFuture::new(self.inner.call(request), way)
    }
}
