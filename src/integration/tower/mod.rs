//! Time limits for [tower](https://docs.rs/tower)'s services, over the response **body** as well; with the feature `tower`.
//!
//! | layer | service | what it does |
//! |---|---|---|
//! | [`TimeoutLayer`] | [`Timeout`] | limits the time to a response of any kind, as `tower::timeout` does |
//! | [`HttpTimeoutLayer`] | [`HttpTimeout`] | limits the time to the end of an HTTP response: headers, body and trailers |
//! | [`DeadlineLayer`] | [`ServerDeadline`] | gives each request an [`rpc::Deadline`]: the client's, by the header `grpc-timeout`, or the server's cap if that is earlier |
//! | [`ClientDeadlineLayer`] | [`ClientDeadline`] | passes the current [`rpc::Deadline`] on, by the header `grpc-timeout` |
//! | [`RespondLayer`] | [`Respond`] | turns [`Elapsed`] into a response: HTTP 504 or 408, or a gRPC status |
//!
//! With the feature `tower-retry`, `tower::backoff` has an exponential backoff for `tower::retry`.
//!
//! # Why the body
//!
//! An HTTP service is done when it has the headers. A limit that ends there leaves out the body, which may stream for hours, or
//! stall. So here the response carries its limit on: its body is a [`LimitedBody`], which fails with [`Elapsed`] at the deadline.
//!
//! The limit is looked at when the body is polled, and by a timer that has it polled again. A server polls a body only while it can send:
//! hyper's HTTP/2 server does not poll the body for a client that has stopped reading. That body, and what it holds, lives on past its
//! limit until the stream ends. So limit the connection as well: by HTTP/2 keep-alive, which finds a client that is gone
//! (`keep_alive_interval` and `keep_alive_timeout` of hyper's server), and by a [`timeout`](crate::timeout()) or an
//! [`IdleTimeout`](crate::rpc::IdleTimeout) around the future of `serve_connection`, for a client that answers and does not read.
//!
//! # The order of layers
//!
//! An error that leaves a server's service closes an HTTP/1 connection, or resets an HTTP/2 stream: the client learns nothing of the
//! deadline. So [`RespondLayer`] goes directly outside of the limits. It goes inside of the layers that treat each response, so that they find the
//! one in place of the error too: CORS, which a browser needs to read a 504; grpc-web, which rewrites the status; tracing, which counts
//! it. As with all layers, what stands outside of a limit is not limited.
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
//!         // All that is called from here finds the deadline.
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
//! // DEADLINE_EXCEEDED, by a response without a body.
//! assert_eq!(response.status(), StatusCode::OK);
//! assert_eq!(response.headers()["grpc-status"], "4");
//! # Ok(())
//! # }
//! ```
//!
//! # Time
//!
//! The limits run on the runtime's timer, [`Timer::current`](crate::Timer::current) at the call of the service. With `on`, a layer
//! uses a [`Timer`](crate::Timer) of your own: with a bound, or on a [`ManualClock`](crate::ManualClock). If the timer was stopped
//! or has reached its `max_pending`, the inner service is not called, and the call fails with [`error::Error`]: the load is shed.
//!
//! Deadlines go by the clock of the scope that they are in. Within a [`scope_on`](crate::rpc::Deadline::scope_on), [`DeadlineLayer`]
//! and [`ClientDeadlineLayer`] without `on` use the timer of that scope. With `on`, they carry over what remains of the scope's
//! deadline, and the handler finds the layer's timer in its scope.
//!
//! A limit begins with `call`. `poll_ready` is not counted, as in `tower::timeout`; to bound the time that requests wait for a service that
//! is not ready, put the layer outside of tower's `Buffer`, or use its `LoadShed`. A limit is
//! [due](crate::time#when-a-timer-is-due) at its tick, and never early. One that overflows means never.
//!
//! # Errors
//!
//! All services here have the error [`BoxError`], as tower's own. Errors of the inner service and of its bodies pass through. Those of
//! this crate are found by `downcast_ref`: [`Elapsed`] and [`error::Error`].
//!
//! # Panics
//!
//! `call` on the runtime's timer panics outside a tokio runtime, or in one without `enable_time`, as [`timeout`](crate::timeout()) does.
//!
//! # Cancellation
//!
//! Dropping a response future or a body drops what is inside, and cancels the timer. When a limit has passed, the inner future or body
//! is dropped at once, even if the outer one is kept.
//!
//! [`Elapsed`]: crate::error::Elapsed
//! [`error::Error`]: crate::error::Error
//! [`rpc::Deadline`]: crate::rpc::Deadline

// | file | concept |
// |---|---|
// | `limit` | what a response carries of its limit: the sleep, and the deadline that is current meanwhile |
// | `body`, `future` | a response body and the response futures, with a limit |
// | `timeout`, `http_timeout`, `deadline`, `client_deadline`, `respond` | a middleware each, with files as tower's own |
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
mod respond;
mod timeout;

pub use body::LimitedBody;
pub use client_deadline::{ClientDeadline, ClientDeadlineLayer};
pub use deadline::{DeadlineLayer, ServerDeadline};
pub use http_timeout::{HttpTimeout, HttpTimeoutLayer};
pub use respond::{Respond, RespondBody, RespondLayer};
pub use timeout::{Timeout, TimeoutLayer};

/// An error of any kind, as tower has it: `tower::BoxError` is the same type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
