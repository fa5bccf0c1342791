use tokio::time::Duration;
use tower_layer::Layer;

use super::HttpTimeout;
use crate::Timer;

/// Limits the time from the call of an HTTP service to the end of the response: headers, body and trailers.
///
/// Before the headers, the call fails with [`Elapsed`](crate::error::Elapsed); after them, the body does, which is a
/// [`LimitedBody`](crate::tower::LimitedBody). A server turns the first into a response by [`RespondLayer`](crate::tower::RespondLayer). An error of a
/// body lets the server close the connection or reset the stream, so that the client does not take what it has for the whole. The docs
/// of [the module](crate::tower) have errors, panics and cancellation.
///
/// ```
/// use http::{Request, Response};
/// use http_body_util::{BodyExt, Channel};
/// use tower::{Service, ServiceBuilder, service_fn};
/// use waterwheel::Duration;
/// use waterwheel::error::Elapsed;
/// use waterwheel::tower::{BoxError, HttpTimeoutLayer};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let mut service = ServiceBuilder::new()
///     .layer(HttpTimeoutLayer::new(Duration::from_millis(10)))
///     .service(service_fn(async |_request: Request<()>| {
///         let (mut sender, body) = Channel::<bytes::Bytes>::new(1);
///         tokio::spawn(async move {
///             while sender.send_data("tick ".into()).await.is_ok() {
///                 waterwheel::sleep(Duration::from_millis(1)).await;
///             }
///         });
///         Ok::<_, BoxError>(Response::new(body))
///     }));
/// // The headers come at once, and the body would never end.
/// let response = service.call(Request::new(())).await?;
/// let error = response.into_body().collect().await.unwrap_err();
/// assert!(error.is::<Elapsed>());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct HttpTimeoutLayer {
    pub(super) limit: Duration,
    pub(super) timer: Option<Timer>,
}

impl HttpTimeoutLayer {
    /// A limit for each response, on the runtime's timer.
    #[must_use]
    pub const fn new(limit: Duration) -> HttpTimeoutLayer {
        HttpTimeoutLayer { limit, timer: None }
    }

    /// The same on a timer of your own.
    #[must_use]
    pub fn on(mut self, timer: &Timer) -> HttpTimeoutLayer {
        self.timer = Some(timer.clone());
        self
    }
}

impl<S> Layer<S> for HttpTimeoutLayer {
    type Service = HttpTimeout<S>;

    fn layer(&self, inner: S) -> HttpTimeout<S> {
        HttpTimeout::with(inner, self.clone())
    }
}
