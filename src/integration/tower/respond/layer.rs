use http::StatusCode;
use tower_layer::Layer;

use super::Respond;
use super::way::Way;

/// Turns the errors of time limits into responses. Requires the feature `tower`.
///
/// Put it directly outside of the layers whose errors it turns into responses, and inside of the layers that process each
/// response: CORS, grpc-web, compression, tracing.
///
/// Without it, an error that leaves a server's service becomes a protocol error: the connection is closed or the stream reset,
/// and a gRPC client gets a status that does not mention the deadline. This layer maps errors as follows:
///
/// | constructor | before the headers | in the body |
/// |---|---|---|
/// | [`gateway_timeout`](RespondLayer::gateway_timeout) | HTTP 504 | the error |
/// | [`request_timeout`](RespondLayer::request_timeout) | HTTP 408 | the error |
/// | [`grpc`](RespondLayer::grpc), for a gRPC request | HTTP 200 with `grpc-status: 4`, `DEADLINE_EXCEEDED` | trailers with that status |
///
/// The table is for an [`Elapsed`](crate::error::Elapsed), or an error that has one among its sources. Any `Elapsed` counts,
/// including that of a [`timeout`](crate::timeout()) in the handler, if the handler fails with it. If the limit has not passed,
/// but its timer was stopped or has reached its `max_pending`, the response is HTTP 503, or `grpc-status: 14`, `UNAVAILABLE`. The
/// responses have no body. Other errors and those of `poll_ready` pass through, as does an [`Error`](crate::error::Error) of
/// [invalid arguments](crate::error::Error::is_invalid).
///
/// The `content-length` of a gRPC response is removed, since trailers may come before the announced end.
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
    /// Creates a layer that responds with HTTP 504: this server, or one that it calls, took too long.
    #[must_use]
    pub const fn gateway_timeout() -> RespondLayer {
        RespondLayer {
            way: Way::Http(StatusCode::GATEWAY_TIMEOUT),
        }
    }

    /// Creates a layer that responds with HTTP 408: the client took too long to send its request. Clients may repeat such a
    /// request automatically, so use it only around code that waits for the request.
    #[must_use]
    pub const fn request_timeout() -> RespondLayer {
        RespondLayer {
            way: Way::Http(StatusCode::REQUEST_TIMEOUT),
        }
    }

    /// Creates a layer that responds with a gRPC status to requests whose `content-type` begins with `application/grpc`.
    ///
    /// The response is a [response without a body](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses),
    /// "Trailers-Only".
    ///
    /// Other requests, such as plain HTTP on the same port, get HTTP 504 or the error of the body, as with
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
