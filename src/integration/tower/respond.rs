//! Responses in place of errors, so that a client learns of a limit that has passed.

use std::error::Error;
use std::iter::successors;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::BoxError;
use super::grpc::{self, Status};
use super::middleware::{Call, Middleware};
use crate::error::{self, Elapsed};

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
/// The table is for an [`Elapsed`], or an error that has one among its sources. Any `Elapsed` counts,
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
    protocol: Protocol,
}

impl RespondLayer {
    /// Creates a layer that responds with HTTP 504: this server, or one that it calls, took too long.
    #[must_use]
    pub const fn gateway_timeout() -> RespondLayer {
        RespondLayer {
            protocol: Protocol::Http(StatusCode::GATEWAY_TIMEOUT),
        }
    }

    /// Creates a layer that responds with HTTP 408: the client took too long to send its request. Clients may repeat such a
    /// request automatically, so use it only around code that waits for the request.
    #[must_use]
    pub const fn request_timeout() -> RespondLayer {
        RespondLayer {
            protocol: Protocol::Http(StatusCode::REQUEST_TIMEOUT),
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
        RespondLayer {
            protocol: Protocol::Grpc,
        }
    }
}

/// The service of [`RespondLayer`]. Requires the feature `tower`.
pub type Respond<S> = Middleware<S, RespondLayer>;

impl<S> Layer<S> for RespondLayer {
    type Service = Respond<S>;

    fn layer(&self, inner: S) -> Respond<S> {
        Middleware::with(inner, self.clone())
    }
}

impl<S, R, B> Call<S, Request<R>> for RespondLayer
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body,
{
    type Response = Response<RespondBody<B>>;
    type Future = RespondFuture<S::Future>;

    fn call(&self, inner: &mut S, request: Request<R>) -> Self::Future {
        let protocol = self.protocol.of_request(request.headers());
        RespondFuture {
            inner: inner.call(request),
            protocol,
        }
    }
}

pin_project! {
    /// The future of [`Respond`](crate::tower::Respond). Requires the feature `tower`.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct RespondFuture<F> {
        #[pin]
        inner: F,
        protocol: Protocol,
    }
}

impl<F, B, E> Future for RespondFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<RespondBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let protocol = *this.protocol;
        Poll::Ready(match ready!(this.inner.poll(context)) {
            Ok(mut response) => {
                protocol.prepare(response.headers_mut());
                Ok(response.map(|body| RespondBody {
                    inner: Some(body),
                    protocol,
                }))
            }
            Err(error) => {
                let error = error.into();
                protocol.response(&*error).ok_or(error)
            }
        })
    }
}

pin_project! {
    /// The response body of [`Respond`](crate::tower::Respond): the inner body, or an empty one. Requires the feature `tower`.
    ///
    /// For gRPC, if a limit makes the inner body fail, the inner body is dropped, and this body ends with trailers that have the
    /// status. The length of such a body is therefore not known in advance.
    #[must_use = "a body does nothing unless it is polled"]
    #[derive(Debug)]
    pub struct RespondBody<B> {
        // `None` if the response is one in place of an error, and after the trailers in place of one.
        #[pin]
        inner: Option<B>,
        protocol: Protocol,
    }
}

impl<B> RespondBody<B> {
    /// Returns a reference to the inner body.
    ///
    /// Returns `None` if the response replaces an error, or once trailers have replaced the end of the body.
    pub fn get_ref(&self) -> Option<&B> {
        self.inner.as_ref()
    }

    /// Returns a mutable reference to the inner body, or `None` as for [`get_ref`](RespondBody::get_ref).
    pub fn get_mut(&mut self) -> Option<&mut B> {
        self.inner.as_mut()
    }

    /// Returns a pinned reference to the inner body, or `None` as for [`get_ref`](RespondBody::get_ref).
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Option<Pin<&mut B>> {
        self.project().inner.as_pin_mut()
    }

    /// Consumes the `RespondBody`, and returns the unchanged inner body, or `None` as for [`get_ref`](RespondBody::get_ref).
    pub fn into_inner(self) -> Option<B> {
        self.inner
    }
}

impl<B> Body for RespondBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut this = self.project();
        let Some(inner) = this.inner.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        Poll::Ready(match ready!(inner.poll_frame(context)) {
            Some(Err(error)) => {
                let error = error.into();
                let trailers = this.protocol.trailers(&*error);
                if trailers.is_some() {
                    this.inner.set(None);
                }
                Some(trailers.map(Frame::trailers).ok_or(error))
            }
            Some(Ok(frame)) => Some(Ok(frame)),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.inner, self.protocol) {
            // The body may be cut off, and then its trailers must not come before the announced length.
            (Some(inner), Protocol::Grpc) if !inner.is_end_stream() => SizeHint::default(),
            (Some(inner), _) => inner.size_hint(),
            (None, _) => SizeHint::with_exact(0),
        }
    }
}

/// How an error becomes a response.
#[derive(Debug, Clone, Copy)]
enum Protocol {
    /// With this status if a limit has passed.
    Http(StatusCode),
    Grpc,
}

impl Protocol {
    /// The protocol for a request with these headers: gRPC for a request of gRPC alone.
    fn of_request(self, headers: &HeaderMap) -> Protocol {
        match self {
            Protocol::Grpc if !grpc::is_type_of(headers) => {
                Protocol::Http(StatusCode::GATEWAY_TIMEOUT)
            }
            protocol => protocol,
        }
    }

    /// Prepares the headers of a response whose body may end otherwise than the inner service says. Trailers before the end of the
    /// announced length are an error of the protocol.
    fn prepare(self, headers: &mut HeaderMap) {
        if let Protocol::Grpc = self {
            headers.remove(CONTENT_LENGTH);
        }
    }

    /// The response in place of an error, if it is one of this crate's.
    fn response<B>(self, error: &(dyn Error + 'static)) -> Option<Response<RespondBody<B>>> {
        let status = status_of(error)?;
        let mut response = Response::new(RespondBody {
            inner: None,
            protocol: self,
        });
        match (self, status) {
            (Protocol::Http(code), Status::DeadlineExceeded) => *response.status_mut() = code,
            (Protocol::Http(_), Status::Unavailable) => {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            // "Trailers-Only" of gRPC over HTTP/2: status 200, the type, the trailers among the headers, and the end of the stream.
            (Protocol::Grpc, status) => {
                let headers = response.headers_mut();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(grpc::TYPE));
                grpc::set_status(headers, status);
            }
        }
        Some(response)
    }

    /// The trailers in place of an error of a body, if it is one of this crate's and there may be any.
    fn trailers(self, error: &(dyn Error + 'static)) -> Option<HeaderMap> {
        match self {
            Protocol::Http(_) => None,
            Protocol::Grpc => {
                let mut trailers = HeaderMap::new();
                grpc::set_status(&mut trailers, status_of(error)?);
                Some(trailers)
            }
        }
    }
}

/// The status of an error of this crate, which others may be wrapped around, as tower's `Buffer` does. An error of bad arguments has
/// none: it is a bug of the server, and the same request would fail again.
fn status_of(error: &(dyn Error + 'static)) -> Option<Status> {
    successors(Some(error), |error| (*error).source()).find_map(|error| {
        match error.downcast_ref::<Elapsed>() {
            Some(elapsed) if elapsed.was_stopped() => Some(Status::Unavailable),
            Some(_) => Some(Status::DeadlineExceeded),
            None => {
                let error = error.downcast_ref::<error::Error>()?;
                (!error.is_invalid()).then_some(Status::Unavailable)
            }
        }
    })
}
