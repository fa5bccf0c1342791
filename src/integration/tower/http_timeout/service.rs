use std::task::{Context, Poll};

use http::Response;
use http_body::Body;
use tokio::time::Duration;
use tower_service::Service;

use super::HttpTimeoutLayer;
use crate::integration::tower::future::HttpResponseFuture;
use crate::integration::tower::limit::Limit;
use crate::integration::tower::{BoxError, LimitedBody};

/// The service of [`HttpTimeoutLayer`]. Requires the feature `tower`.
#[derive(Debug, Clone)]
pub struct HttpTimeout<S> {
    inner: S,
    layer: HttpTimeoutLayer,
}

impl<S> HttpTimeout<S> {
    /// Creates a service that limits each response, on the runtime's timer.
    pub const fn new(inner: S, limit: Duration) -> HttpTimeout<S> {
        HttpTimeout::with(inner, HttpTimeoutLayer::new(limit))
    }

    pub(super) const fn with(inner: S, layer: HttpTimeoutLayer) -> HttpTimeout<S> {
        HttpTimeout { inner, layer }
    }

    /// Returns a reference to the inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns a mutable reference to the inner service.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Consumes this service, and returns the inner service without the limit.
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
        let timer = self.layer.timer.as_ref();
        let limit = match self.layer.frame_timeout {
            None => Limit::after(timer, self.layer.limit),
            Some(frame) => Limit::with_frames(timer, self.layer.limit, frame),
        };
        match limit {
            Ok(limit) => HttpResponseFuture::new(self.inner.call(request), limit),
            Err(error) => HttpResponseFuture::refused(error),
        }
    }
}
