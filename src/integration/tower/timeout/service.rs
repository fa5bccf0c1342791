use std::task::{Context, Poll};

use tokio::time::Duration;
use tower_service::Service;

use super::TimeoutLayer;
use crate::integration::tower::BoxError;
use crate::integration::tower::future::ResponseFuture;
use crate::integration::tower::limit::Limit;

/// The service of [`TimeoutLayer`]. Requires the feature `tower`.
#[derive(Debug, Clone)]
pub struct Timeout<S> {
    inner: S,
    layer: TimeoutLayer,
}

impl<S> Timeout<S> {
    /// Creates a service that limits each call, on the runtime's timer.
    pub const fn new(inner: S, limit: Duration) -> Timeout<S> {
        Timeout::with(inner, TimeoutLayer::new(limit))
    }

    pub(super) const fn with(inner: S, layer: TimeoutLayer) -> Timeout<S> {
        Timeout { inner, layer }
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

impl<S, R> Service<R> for Timeout<S>
where
    S: Service<R>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        match Limit::after(self.layer.timer.as_ref(), self.layer.limit) {
            Ok(limit) => ResponseFuture::new(self.inner.call(request), limit),
            Err(error) => ResponseFuture::refused(error),
        }
    }
}
