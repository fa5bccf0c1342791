//! A time limit for an HTTP response, its body included.

use http::Response;
use http_body::Body;
use tokio::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

use super::future::HttpResponseFuture;
use super::limit::Limit;
use super::middleware::{Call, Middleware};
use super::{BoxError, LimitedBody};
use crate::Timer;

/// Limits the time from the call of an HTTP service to the end of the response, including the body and trailers. Requires the
/// feature `tower`.
///
/// With [`frame_timeout`](HttpTimeoutLayer::frame_timeout), the layer also limits the time between the frames of the body.
///
/// If the limit passes before the headers, the call fails with [`Elapsed`](crate::error::Elapsed);
/// [`RespondLayer`](crate::tower::RespondLayer) turns this error into a response. If it passes after the headers, the body fails,
/// which is a [`LimitedBody`]. An error of the body makes the server close the connection or reset the
/// stream, so that the client does not mistake a partial body for a complete one. See [the module](crate::tower) for errors,
/// panics and cancellation.
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
    limit: Duration,
    frame_timeout: Option<Duration>,
    timer: Option<Timer>,
}

impl HttpTimeoutLayer {
    /// Creates a layer that limits each response, on the runtime's timer.
    #[must_use]
    pub const fn new(limit: Duration) -> HttpTimeoutLayer {
        HttpTimeoutLayer {
            limit,
            frame_timeout: None,
            timer: None,
        }
    }

    /// Also limits the time that the body takes for each frame, so that a stream that stalls fails long before the limit of the
    /// whole response.
    ///
    /// Such a limit is also known as an idle timeout or a read timeout. The first frame after the headers, each further frame, the
    /// trailers and the end of the body must each come within `timeout`. If one does not, the body fails with
    /// [`Elapsed`](crate::error::Elapsed), as it does at the limit of the whole response, whichever comes first. The time to the
    /// headers has only the limit of the whole response. For a limit of the frames alone, create the layer with `Duration::MAX`.
    ///
    /// The time for a frame starts when the body is polled for it and the frame is not ready. It does not include the time in which
    /// the client has not read the previous frame and the server therefore does not poll the body. Once started, it runs until a
    /// poll finds the frame ready. The inner body is polled before the limit is checked: a frame that is ready at that poll is in
    /// time, however late the poll is. With a timeout of zero, a frame has until the end of the current tick. A duration that
    /// overflows means no limit.
    ///
    /// tower-http's `ResponseBodyTimeoutLayer` starts its time in the same way, but checks it before it polls the inner body, so that
    /// it fails if a frame that was ready in time is fetched late.
    ///
    /// A response has one timer for both limits, and takes one place of its `max_pending`.
    ///
    /// ```
    /// use http::{Request, Response};
    /// use http_body_util::{BodyExt, Channel};
    /// use tower::{Service, ServiceBuilder, service_fn};
    /// use waterwheel::error::Elapsed;
    /// use waterwheel::tower::{BoxError, HttpTimeoutLayer};
    /// use waterwheel::{Duration, Instant, sleep};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), BoxError> {
    /// let layer = HttpTimeoutLayer::new(Duration::from_secs(3600));
    /// let mut service = ServiceBuilder::new()
    ///     .layer(layer.frame_timeout(Duration::from_secs(5)))
    ///     .service(service_fn(async |_request: Request<()>| {
    ///         let (mut sender, body) = Channel::<bytes::Bytes>::new(1);
    ///         tokio::spawn(async move {
    ///             for wait in [4, 4, 60] {
    ///                 sleep(Duration::from_secs(wait)).await;
    ///                 let _ = sender.send_data("progress ".into()).await;
    ///             }
    ///         });
    ///         Ok::<_, BoxError>(Response::new(body))
    ///     }));
    /// let start = Instant::now();
    /// let response = service.call(Request::new(())).await?;
    /// let error = response.into_body().collect().await.unwrap_err();
    /// assert!(error.is::<Elapsed>());
    /// assert_eq!(start.elapsed(), Duration::from_secs(4 + 4 + 5));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn frame_timeout(mut self, timeout: Duration) -> HttpTimeoutLayer {
        self.frame_timeout = Some(timeout);
        self
    }

    /// Uses a timer of your own.
    #[must_use]
    pub fn on(mut self, timer: &Timer) -> HttpTimeoutLayer {
        self.timer = Some(timer.clone());
        self
    }
}

/// The service of [`HttpTimeoutLayer`]. Requires the feature `tower`.
pub type HttpTimeout<S> = Middleware<S, HttpTimeoutLayer>;

impl<S> HttpTimeout<S> {
    /// Creates a service that limits each response, on the runtime's timer.
    pub const fn new(inner: S, limit: Duration) -> HttpTimeout<S> {
        Middleware::with(inner, HttpTimeoutLayer::new(limit))
    }
}

impl<S> Layer<S> for HttpTimeoutLayer {
    type Service = HttpTimeout<S>;

    fn layer(&self, inner: S) -> HttpTimeout<S> {
        Middleware::with(inner, self.clone())
    }
}

impl<S, R, B> Call<S, R> for HttpTimeoutLayer
where
    S: Service<R, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body,
{
    type Response = Response<LimitedBody<B>>;
    type Future = HttpResponseFuture<S::Future>;

    fn call(&self, inner: &mut S, request: R) -> Self::Future {
        let timer = self.timer.as_ref();
        let limit = match self.frame_timeout {
            None => Limit::after(timer, self.limit),
            Some(frame) => Limit::with_frames(timer, self.limit, frame),
        };
        match limit {
            Ok(limit) => HttpResponseFuture::new(inner.call(request), limit),
            Err(error) => HttpResponseFuture::refused(error),
        }
    }
}
