use tokio::time::Duration;
use tower_layer::Layer;

use super::Timeout;
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
    pub(super) limit: Duration,
    pub(super) timer: Option<Timer>,
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

impl<S> Layer<S> for TimeoutLayer {
    type Service = Timeout<S>;

    fn layer(&self, inner: S) -> Timeout<S> {
        Timeout::with(inner, self.clone())
    }
}
