use std::task::{Context, Poll};

use http::Response;
use http_body::Body;
use tokio::time::Duration;
use tower_service::Service;

use super::HttpTimeoutLayer;
use crate::integration::tower::future::HttpResponseFuture;
use crate::integration::tower::limit::Limit;
use crate::integration::tower::{BoxError, LimitedBody};

/// The service of [`HttpTimeoutLayer`].
#[derive(Debug, Clone)]
pub struct HttpTimeout<S> {
    inner: S,
    layer: HttpTimeoutLayer,
}

impl<S> HttpTimeout<S> {
    /// A limit for each response, on the runtime's timer.
    pub const fn new(inner: S, limit: Duration) -> HttpTimeout<S> {
        HttpTimeout::with(inner, HttpTimeoutLayer::new(limit))
    }

    pub(super) const fn with(inner: S, layer: HttpTimeoutLayer) -> HttpTimeout<S> {
        HttpTimeout { inner, layer }
    }

    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The inner service, without the limit.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, R, B> Service<R> for HttpTimeout<S>
where
    S: Service<R, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body,
{
    type Response = Response<LimitedBody<B>>;
    type Error = BoxError;
    type Future = HttpResponseFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        match Limit::after(self.layer.timer.as_ref(), self.layer.limit) {
            Ok(limit) => HttpResponseFuture::new(self.inner.call(request), limit),
            Err(error) => HttpResponseFuture::refused(error),
        }
    }
}
