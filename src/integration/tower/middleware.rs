use std::task::{Context, Poll};

use tower_service::Service;

use super::BoxError;

/// The service that the layers of this module create: [`Timeout`](crate::tower::Timeout), [`HttpTimeout`](crate::tower::HttpTimeout)
/// and the others are names for it. Requires the feature `tower`.
#[derive(Debug, Clone)]
pub struct Middleware<S, L> {
    inner: S,
    layer: L,
}

impl<S, L> Middleware<S, L> {
    pub(super) const fn with(inner: S, layer: L) -> Middleware<S, L> {
        Middleware { inner, layer }
    }

    /// Returns a reference to the inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns a mutable reference to the inner service.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Consumes this service, and returns the inner service.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

/// How a layer's service calls the inner one. Not nameable outside of this crate, so no other type can be such a layer.
pub trait Call<S, R> {
    type Response;
    type Future: Future<Output = Result<Self::Response, BoxError>>;

    fn call(&self, inner: &mut S, request: R) -> Self::Future;
}

impl<S, L, R> Service<R> for Middleware<S, L>
where
    S: Service<R>,
    S::Error: Into<BoxError>,
    L: Call<S, R>,
{
    type Response = L::Response;
    type Error = BoxError;
    type Future = L::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> L::Future {
        self.layer.call(&mut self.inner, request)
    }
}
