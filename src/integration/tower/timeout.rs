//! A time limit for a response of any kind.

use tokio::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

use super::BoxError;
use super::future::ResponseFuture;
use super::limit::Limit;
use super::middleware::{Call, Middleware};
use crate::Timer;

/// Limits the time from the call of a service to its response, of any kind. Requires the feature `tower`.
///
/// `TimeoutLayer::new` is compatible with `tower::timeout::TimeoutLayer::new`, so that changing the `use` line is enough; the
/// error is waterwheel's [`Elapsed`](crate::error::Elapsed). For an HTTP response, the limit ends with the headers: use
/// [`HttpTimeoutLayer`](crate::tower::HttpTimeoutLayer) to include the body. See [the module](crate::tower) for errors, panics
/// and cancellation.
///
/// ```
/// use tower::{Service, ServiceBuilder, service_fn};
/// use waterwheel::Duration;
/// use waterwheel::error::Elapsed;
/// use waterwheel::tower::{BoxError, TimeoutLayer};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let mut service = ServiceBuilder::new()
///     .layer(TimeoutLayer::new(Duration::from_millis(10)))
///     .service(service_fn(async |wait: u64| {
///         waterwheel::sleep(Duration::from_millis(wait)).await;
///         Ok::<_, BoxError>("done")
///     }));
/// assert_eq!(service.call(0).await?, "done");
/// let error = service.call(60_000).await.unwrap_err();
/// assert!(error.is::<Elapsed>());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TimeoutLayer {
    limit: Duration,
    timer: Option<Timer>,
}

impl TimeoutLayer {
    /// Creates a layer that limits each call, on the runtime's timer.
    #[must_use]
    pub const fn new(limit: Duration) -> TimeoutLayer {
        TimeoutLayer { limit, timer: None }
    }

    /// Uses a timer of your own.
    #[must_use]
    pub fn on(mut self, timer: &Timer) -> TimeoutLayer {
        self.timer = Some(timer.clone());
        self
    }
}

/// The service of [`TimeoutLayer`]. Requires the feature `tower`.
pub type Timeout<S> = Middleware<S, TimeoutLayer>;

impl<S> Timeout<S> {
    /// Creates a service that limits each call, on the runtime's timer.
    pub const fn new(inner: S, limit: Duration) -> Timeout<S> {
        Middleware::with(inner, TimeoutLayer::new(limit))
    }
}

impl<S> Layer<S> for TimeoutLayer {
    type Service = Timeout<S>;

    fn layer(&self, inner: S) -> Timeout<S> {
        Middleware::with(inner, self.clone())
    }
}

impl<S, R> Call<S, R> for TimeoutLayer
where
    S: Service<R>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Future = ResponseFuture<S::Future>;

    fn call(&self, inner: &mut S, request: R) -> Self::Future {
        match Limit::after(self.timer.as_ref(), self.limit) {
            Ok(limit) => ResponseFuture::new(inner.call(request), limit),
            Err(error) => ResponseFuture::refused(error),
        }
    }
}
