//! The client's side of a deadline that travels.

use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::future::HttpResponseFuture;
use super::limit::{Limit, remaining, timer_of};
use super::middleware::{Call, Middleware};
use super::{BoxError, LimitedBody, grpc};
use crate::{Timer, rpc};

/// Sends the remaining time of [`Deadline::current`](crate::rpc::Deadline::current) in the `grpc-timeout` header. Requires the
/// feature `tower`.
///
/// - The value is [rounded down](crate::rpc::grpc_timeout::format()), so that a deadline does not grow on its way. A header that
///   already asks for less is left as it is; of several headers, only the one that asks for the least is kept.
/// - If the deadline has passed, the inner service is not called. The call fails with [`Elapsed`](crate::error::Elapsed), unless
///   the scope of the deadline is about to end it.
/// - Without a deadline, the request is not changed.
///
/// The scope of the deadline ends everything that is awaited in it, including this call and its body. If the response future or
/// the body is moved out of the scope, for instance to another task, this layer ends it with `Elapsed`. The layer also ends it in
/// a [`sync_scope`](crate::rpc::Deadline::sync_scope), which ends nothing by itself. Code that blocks on the call within a scope,
/// as with a nested `block_on`, needs a `sync_scope` around it, since the scope cannot end a future that does not return from its
/// poll.
///
/// # Order
///
/// - Put it inside of tower's `Retry`, so that each attempt sends the time that remains at that moment. Outside of `Retry`, the
///   header is written once, and each attempt sends it again although less time remains.
/// - Put it outside of tower's `Buffer`: the worker task of a `Buffer` calls everything inside of it, and the caller's deadline
///   is not current there. The time that a request waits in the `Buffer` counts towards the limit, but is not subtracted from the
///   header.
/// - For a tonic client, put it inside of [`RespondLayer::grpc`](crate::tower::RespondLayer::grpc): tonic maps errors that it
///   does not know to `UNKNOWN`, whereas a call that this layer ends then has the status `DEADLINE_EXCEEDED`.
///
/// See [the module](crate::tower) for errors, panics and cancellation.
/// [grpc-rust#2316](https://github.com/grpc/grpc-rust/issues/2316) asks for this behaviour.
///
/// ```
/// use http::{Request, Response};
/// use tower::{Service, ServiceBuilder, service_fn};
/// use waterwheel::Duration;
/// use waterwheel::rpc::{Deadline, grpc_timeout};
/// use waterwheel::tower::{BoxError, ClientDeadlineLayer};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let mut client = ServiceBuilder::new()
///     .layer(ClientDeadlineLayer::new())
///     .service(service_fn(async |request: Request<()>| {
///         let left = grpc_timeout::parse(&request.headers()["grpc-timeout"])?;
///         assert!(left < Duration::from_secs(5));
///         Ok::<_, BoxError>(Response::new(String::new()))
///     }));
/// let call = async { client.call(Request::new(())).await };
/// Deadline::after(Duration::from_secs(5)).scope(call).await??;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct ClientDeadlineLayer {
    timer: Option<Timer>,
}

impl ClientDeadlineLayer {
    /// Creates a layer that uses the clock and the timer of the caller's [scope](crate::rpc::Deadline): the clock for the
    /// remaining time, and the timer to end what leaves the scope. This is the runtime's timer unless the scope has one of its
    /// own.
    #[must_use]
    pub const fn new() -> ClientDeadlineLayer {
        ClientDeadlineLayer { timer: None }
    }

    /// Uses the clock and the timer of `timer` instead. If the scope has another clock, the remaining time of its deadline is
    /// what counts.
    #[must_use]
    pub fn on(mut self, timer: &Timer) -> ClientDeadlineLayer {
        self.timer = Some(timer.clone());
        self
    }
}

/// The service of [`ClientDeadlineLayer`]. Requires the feature `tower`.
pub type ClientDeadline<S> = Middleware<S, ClientDeadlineLayer>;

impl<S> Layer<S> for ClientDeadlineLayer {
    type Service = ClientDeadline<S>;

    fn layer(&self, inner: S) -> ClientDeadline<S> {
        Middleware::with(inner, self.clone())
    }
}

impl<S, R, B> Call<S, Request<R>> for ClientDeadlineLayer
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body,
{
    type Response = Response<LimitedBody<B>>;
    type Future = HttpResponseFuture<S::Future>;

    fn call(&self, inner: &mut S, mut request: Request<R>) -> Self::Future {
        let timer = timer_of(self.timer.as_ref());
        let deadline = rpc::deadline_on(timer.as_ref());
        let Some(left) = remaining(deadline, timer.as_ref()) else {
            return HttpResponseFuture::new(inner.call(request), Limit::NEVER);
        };
        if left.is_zero() {
            return HttpResponseFuture::too_late(Limit::passed(timer, deadline).deferring());
        }
        match Limit::until(timer, deadline) {
            Ok(limit) => {
                grpc::set_timeout(request.headers_mut(), left);
                HttpResponseFuture::new(inner.call(request), limit.deferring())
            }
            Err(error) => HttpResponseFuture::refused(error),
        }
    }
}
