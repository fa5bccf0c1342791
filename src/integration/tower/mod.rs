//! Time limits for [tower](https://docs.rs/tower) services, including the response **body**.
//!
//! This module requires the feature `tower`. With the feature `tower-retry`, `tower::backoff` adds an exponential backoff for
//! `tower::retry`.
//!
//! | layer | service | purpose |
//! |---|---|---|
//! | [`TimeoutLayer`] | [`Timeout`] | limits the time to a response of any kind, like `tower::timeout` |
//! | [`HttpTimeoutLayer`] | [`HttpTimeout`] | limits the time to the end of an HTTP response (headers, body and trailers), and the time between the frames of its body |
//! | [`DeadlineLayer`] | [`ServerDeadline`] | gives each request an [`rpc::Deadline`]: that of the client's `grpc-timeout` header, or the server's cap if that is earlier |
//! | [`ClientDeadlineLayer`] | [`ClientDeadline`] | sends the current [`rpc::Deadline`] on in the `grpc-timeout` header |
//! | [`RespondLayer`] | [`Respond`] | turns [`Elapsed`] into a response: HTTP 504 or 408, or a gRPC status |
//!
//! # Why the body
//!
//! An HTTP service completes when it has the headers. A limit that ends there does not cover the body, which may stream for
//! hours, or stall. The HTTP layers here, [`HttpTimeoutLayer`] and the two deadline layers, therefore attach the limit to the
//! response: its body is a [`LimitedBody`], which fails with [`Elapsed`] at the deadline. A body that streams for as long as it
//! likes and must not stall has a limit between its frames: [`frame_timeout`](HttpTimeoutLayer::frame_timeout).
//!
//! The limit is checked when the body is polled, and a timer causes it to be polled at the deadline. A server polls a body only
//! while it can send: hyper's HTTP/2 server does not poll the body for a client that has stopped reading. That body, and
//! everything it holds, outlives its limit until the stream ends. Limit the connection as well: with HTTP/2 keep-alive
//! (`keep_alive_interval` and `keep_alive_timeout` of hyper's server), which detects a client that is gone, and with a
//! [`timeout`](crate::timeout()) or an [`IdleTimeout`](crate::rpc::IdleTimeout) around the future of `serve_connection`, for a
//! client that answers but does not read.
//!
//! # The order of layers
//!
//! An error that leaves a server's service closes an HTTP/1 connection or resets an HTTP/2 stream, and the client is not told
//! about the deadline. Put [`RespondLayer`] directly outside of the limits. Put it inside of the layers that process each
//! response, so that they also see the response that replaces the error: CORS, which a browser needs to read a 504; grpc-web,
//! which rewrites the status; and tracing, which counts it. As with all layers, anything outside of a limit is not limited.
//!
//! ```
//! use http::{Request, Response, StatusCode};
//! use tower::{Service, ServiceBuilder, service_fn};
//! use waterwheel::Duration;
//! use waterwheel::rpc::Deadline;
//! use waterwheel::tower::{DeadlineLayer, RespondLayer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), waterwheel::tower::BoxError> {
//! let mut server = ServiceBuilder::new()
//!     .layer(RespondLayer::grpc())
//!     .layer(DeadlineLayer::new().cap(Duration::from_secs(60)))
//!     .service(service_fn(async |_request: Request<()>| {
//!         // Everything that is called from here can look up the deadline.
//!         assert!(Deadline::current().remaining() <= Some(Duration::from_millis(5)));
//!         waterwheel::sleep(Duration::from_secs(10)).await;
//!         Ok::<_, std::convert::Infallible>(Response::new(String::new()))
//!     }));
//!
//! let request = Request::builder()
//!     .header("grpc-timeout", "5m")
//!     .header("content-type", "application/grpc")
//!     .body(())?;
//! let response = server.call(request).await?;
//! // DEADLINE_EXCEEDED, as a response without a body.
//! assert_eq!(response.status(), StatusCode::OK);
//! assert_eq!(response.headers()["grpc-status"], "4");
//! # Ok(())
//! # }
//! ```
//!
//! # Time
//!
//! The limits run on the runtime's timer, [`Timer::current`](crate::Timer::current) at the call of the service. With `on`, a
//! layer uses a [`Timer`](crate::Timer) of your own: one with a `max_pending`, or one on a [`ManualClock`](crate::ManualClock).
//! If the timer was stopped or has reached its `max_pending`, the inner service is not called, and the call fails with
//! [`error::Error`], which sheds load.
//!
//! Deadlines use the clock of the scope that they are in. Within a [`scope_on`](crate::rpc::Deadline::scope_on),
//! [`DeadlineLayer`] and [`ClientDeadlineLayer`] without `on` use the timer of that scope. With `on`, they carry over the
//! remaining time of the scope's deadline to the layer's timer, and the handler finds that timer in its scope.
//!
//! A limit starts at `call`. `poll_ready` is not included, as in `tower::timeout`; to limit the time that requests wait for a
//! service that is not ready, put the layer outside of tower's `Buffer`, or use its `LoadShed`. A limit is
//! [due](crate::time#when-a-timer-is-due) at its tick, and never early. A limit that overflows means never.
//!
//! # Errors
//!
//! All services in this module have the error type [`BoxError`], like tower's own. Errors of the inner service and of its bodies
//! are passed through. The errors of this crate, [`Elapsed`] and [`error::Error`], can be found with `downcast_ref`.
//!
//! # Panics
//!
//! On the runtime's timer, `call` panics outside of a tokio runtime, or if the runtime was built without `enable_time`, like
//! [`timeout`](crate::timeout()).
//!
//! # Cancellation
//!
//! Dropping a response future or a body drops the inner one and cancels the timer. When a limit passes, the inner future or body
//! is dropped at once, even if the outer one is kept.
//!
//! [`Elapsed`]: crate::error::Elapsed
//! [`error::Error`]: crate::error::Error
//! [`rpc::Deadline`]: crate::rpc::Deadline

// | file | concept |
// |---|---|
// | `limit` | what a response carries of its limit: the sleep, and the deadline that is current meanwhile |
// | `body`, `future` | a response body and the response futures, with a limit |
// | `middleware` | the service of every layer |
// | `timeout`, `http_timeout`, `deadline`, `client_deadline`, `respond` | a layer each, and how its service calls the inner one |
// | `grpc` | the headers of gRPC: the timeout, the status |
// | `backoff` | the delays between retries |

#[cfg(feature = "tower-retry")]
pub mod backoff;
mod body;
mod client_deadline;
mod deadline;
pub mod future;
mod grpc;
mod http_timeout;
mod limit;
mod middleware;
mod respond;
mod timeout;

pub use body::LimitedBody;
pub use client_deadline::{ClientDeadline, ClientDeadlineLayer};
pub use deadline::{DeadlineLayer, ServerDeadline};
pub use http_timeout::{HttpTimeout, HttpTimeoutLayer};
pub use middleware::Middleware;
pub use respond::{Respond, RespondBody, RespondLayer};
pub use timeout::{Timeout, TimeoutLayer};

/// An error of any type: the same type as `tower::BoxError`. Requires the feature `tower`.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
