use http::StatusCode;
use tower_layer::Layer;

use super::Respond;
use super::way::Way;

/// Turns the errors of time limits into responses. It goes directly outside of the layers whose errors it takes, and inside of those that
/// treat each response: CORS, grpc-web, compression, tracing.
///
/// An error that leaves a server's service becomes an error of the protocol: the connection is closed, or the stream reset, and a gRPC
/// client gets a status that says nothing of the deadline. What becomes what:
///
/// | | before the headers | in the body |
/// |---|---|---|
/// | [`gateway_timeout`](RespondLayer::gateway_timeout) | HTTP 504 | the error |
/// | [`request_timeout`](RespondLayer::request_timeout) | HTTP 408 | the error |
/// | [`grpc`](RespondLayer::grpc), for a request of gRPC | HTTP 200 with `grpc-status: 4`, `DEADLINE_EXCEEDED` | trailers with that status |
///
/// These are for an [`Elapsed`](crate::error::Elapsed), or an error that has one among its sources. Any `Elapsed` counts, also that of a
/// [`timeout`](crate::timeout()) in the handler, if the handler fails with it. If the limit has not passed, but its timer was stopped or
/// has reached its `max_pending`, it is HTTP 503, or `grpc-status: 14`, `UNAVAILABLE`. The responses have no body. Other errors, and those
/// of `poll_ready`, pass through; so does an [`Error`](crate::error::Error) of [bad arguments](crate::error::Error::is_invalid).
///
/// A response of gRPC loses its `content-length`, since trailers may come before its end.
///
/// ```
/// use http::{Request, Response, StatusCode};
/// use tower::{Service, ServiceBuilder, service_fn};
/// use waterwheel::Duration;
/// use waterwheel::tower::{BoxError, HttpTimeoutLayer, RespondLayer};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let mut server = ServiceBuilder::new()
///     .layer(RespondLayer::gateway_timeout())
///     .layer(HttpTimeoutLayer::new(Duration::from_millis(10)))
///     .service(service_fn(async |_request: Request<()>| {
///         waterwheel::sleep(Duration::from_secs(60)).await;
///         Ok::<_, BoxError>(Response::new(String::new()))
///     }));
/// let response = server.call(Request::new(())).await?;
/// assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RespondLayer {
    way: Way,
}

impl RespondLayer {
    /// HTTP 504: this server, or one that it asks, took too long.
    #[must_use]
    pub const fn gateway_timeout() -> RespondLayer {
        RespondLayer {
            way: Way::Http(StatusCode::GATEWAY_TIMEOUT),
        }
    }

    /// HTTP 408: the client took too long to send its request. Clients may send it again by themselves, so use it only around what
    /// waits for the request.
    #[must_use]
    pub const fn request_timeout() -> RespondLayer {
        RespondLayer {
            way: Way::Http(StatusCode::REQUEST_TIMEOUT),
        }
    }

    /// gRPC, for requests whose `content-type` begins with `application/grpc`: a [response without a body](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses), "Trailers-Only".
    ///
    /// Other requests, as of plain HTTP on the same port, get HTTP 504 or the error of the body, as by
    /// [`gateway_timeout`](RespondLayer::gateway_timeout).
    #[must_use]
    pub const fn grpc() -> RespondLayer {
        RespondLayer { way: Way::Grpc }
    }
}

impl<S> Layer<S> for RespondLayer {
    type Service = Respond<S>;

    fn layer(&self, inner: S) -> Respond<S> {
        Respond::with(inner, self.way)
    }
}
