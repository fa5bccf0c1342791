//! The server's side of a deadline that travels.

use http::{HeaderMap, Request, Response};
use http_body::Body;
use tokio::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

use super::future::HttpResponseFuture;
use super::limit::{Limit, remaining, timer_of};
use super::middleware::{Call, Middleware};
use super::{BoxError, LimitedBody, grpc};
use crate::Timer;
use crate::rpc::{self, Deadline};

/// Gives each request a deadline, from the client's `grpc-timeout` header and a cap of the server. Requires the feature `tower`.
///
/// This is the server side of a deadline; the client side is [`ClientDeadlineLayer`](crate::tower::ClientDeadlineLayer).
///
/// The smaller of header and cap applies, and without a header the cap alone. Within a [scope](Deadline::scope) of the caller,
/// the earlier deadline applies. It is [`Deadline::current`] in the inner service's `call`, in its future, and in the response
/// body whenever that is polled; and it ends the future or the body with [`Elapsed`](crate::error::Elapsed). The future is polled
/// before the deadline is checked: if it is ready, its output is returned even after the deadline.
///
/// If the deadline has already passed when the request arrives, as with the header `0n`, the inner service is not called, since
/// the client no longer waits; the call fails with `Elapsed`.
///
/// A body is ended when it is polled, and a server does not poll the body for a client that has stopped reading: limit the
/// connection as well, as described in [the module](crate::tower).
///
/// A header that [`grpc_timeout::parse`](crate::rpc::grpc_timeout::parse) rejects sets no deadline, as if it were absent; the cap
/// still applies. With the feature `tracing`, a DEBUG event reports it. If there are several headers, the first is used.
///
/// The layer suits any HTTP server: without the header, it is an [`HttpTimeoutLayer`](crate::tower::HttpTimeoutLayer) whose limit
/// the handler can look up. Put [`RespondLayer`](crate::tower::RespondLayer) outside of it. See [the module](crate::tower) for an
/// example, errors, panics and cancellation.
///
/// The contexts of grpc-go and grpc-java work in this way. The timeout of tonic's server ends with the headers, and the handler
/// cannot look it up.
///
/// ```
/// use http::{Request, Response};
/// use tower::{Service, ServiceBuilder, service_fn};
/// use waterwheel::Duration;
/// use waterwheel::rpc::Deadline;
/// use waterwheel::tower::{BoxError, DeadlineLayer};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let mut server = ServiceBuilder::new()
///     .layer(DeadlineLayer::new().cap(Duration::from_secs(10)))
///     .service(service_fn(async |_request: Request<()>| {
///         let left = Deadline::current().remaining().unwrap();
///         Ok::<_, BoxError>(Response::new(format!("{} s at most", left.as_secs_f64().ceil())))
///     }));
/// for (header, answer) in [("2S", "2 s at most"), ("1H", "10 s at most"), ("later", "10 s at most")] {
///     let request = Request::builder().header("grpc-timeout", header).body(())?;
///     let response = server.call(request).await?;
///     let body = http_body_util::BodyExt::collect(response.into_body()).await?;
///     assert_eq!(body.to_bytes(), answer);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct DeadlineLayer {
    cap: Option<Duration>,
    timer: Option<Timer>,
}

impl DeadlineLayer {
    /// Creates a layer that accepts the client's deadline without a cap, on the runtime's timer, or on the timer of the caller's
    /// [scope](Deadline) if it has one.
    #[must_use]
    pub const fn new() -> DeadlineLayer {
        DeadlineLayer {
            cap: None,
            timer: None,
        }
    }

    /// Limits each request to `cap` from the call on, including requests without the header.
    #[must_use]
    pub const fn cap(mut self, cap: Duration) -> DeadlineLayer {
        self.cap = Some(cap);
        self
    }

    /// Uses a timer of your own, and makes it the timer of the [scope](Deadline): deadlines within the scope use its clock,
    /// [`Timer::now`]. If an outer scope has another clock, the remaining time of its deadline is what counts.
    #[must_use]
    pub fn on(mut self, timer: &Timer) -> DeadlineLayer {
        self.timer = Some(timer.clone());
        self
    }

    /// The deadline of a request with these headers that comes now, by the clock of this timer or of the runtime's.
    fn deadline_of(&self, headers: &HeaderMap, timer: Option<&Timer>) -> Deadline {
        let asked = grpc::timeout_of(headers);
        let limit = match (asked, self.cap) {
            (Some(asked), Some(cap)) => Some(asked.min(cap)),
            (asked, cap) => asked.or(cap),
        };
        let own = match (limit, timer) {
            (None, _) => Deadline::never(),
            (Some(limit), None) => Deadline::after(limit),
            (Some(limit), Some(timer)) => {
                let instant = timer.now().checked_add(limit);
                instant.map_or(Deadline::never(), Deadline::at)
            }
        };
        own.earlier(rpc::deadline_on(timer))
    }
}

/// The service of [`DeadlineLayer`]. Requires the feature `tower`.
pub type ServerDeadline<S> = Middleware<S, DeadlineLayer>;

impl<S> Layer<S> for DeadlineLayer {
    type Service = ServerDeadline<S>;

    fn layer(&self, inner: S) -> ServerDeadline<S> {
        Middleware::with(inner, self.clone())
    }
}

impl<S, R, B> Call<S, Request<R>> for DeadlineLayer
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body,
{
    type Response = Response<LimitedBody<B>>;
    type Future = HttpResponseFuture<S::Future>;

    fn call(&self, inner: &mut S, request: Request<R>) -> Self::Future {
        let timer = timer_of(self.timer.as_ref());
        let deadline = self.deadline_of(request.headers(), timer.as_ref());
        if remaining(deadline, timer.as_ref()) == Some(Duration::ZERO) {
            return HttpResponseFuture::too_late(Limit::NEVER);
        }
        match Limit::until(timer, deadline) {
            Ok(mut limit) => {
                // Around the call as well: a service may read the deadline before it makes its future.
                let future = limit.within(|| inner.call(request));
                HttpResponseFuture::new(future, limit)
            }
            Err(error) => HttpResponseFuture::refused(error),
        }
    }
}
