use tower_layer::Layer;

use super::ClientDeadline;
use crate::Timer;

/// Passes the deadline on: writes what is left of [`Deadline::current`](crate::rpc::Deadline::current) into the header `grpc-timeout`.
///
/// - The value is [rounded down](crate::rpc::grpc_timeout::format()), so that a deadline does not grow on its way. A header that asks
///   for less already stays as it is; of several, the one that asks for the least stays, alone.
/// - If the deadline has passed, the inner service is not called. The call fails with [`Elapsed`](crate::error::Elapsed), unless the scope
///   of the deadline is about to end it.
/// - Without a deadline the request stays as it is.
///
/// The scope of the deadline ends what is awaited in it, this call and its body included. If the response future or the body is taken
/// out of the scope, to another task for instance, this layer ends it, with `Elapsed`. So it does in a
/// [`sync_scope`](crate::rpc::Deadline::sync_scope), which ends nothing: code that blocks on the call within a scope, as by a nested
/// `block_on`, needs a `sync_scope` around it, since the scope cannot end a future that does not return from its poll.
///
/// # Order
///
/// - Inside of tower's `Retry`: then each attempt sends what is left at that time. Outside of it, the header is written once, and each
///   attempt sends it again, though less is left.
/// - Outside of tower's `Buffer`: the worker task of a `Buffer` calls what is inside, and there the caller's deadline is not current. The
///   time that a request waits in the `Buffer` counts to the limit, and is not taken off the header.
/// - Inside of [`RespondLayer::grpc`](crate::tower::RespondLayer::grpc) for a client of tonic, which makes
///   `UNKNOWN` of errors that it does not know: then a call that this layer ends has the status `DEADLINE_EXCEEDED`.
///
/// The docs of [the module](crate::tower) have errors, panics and cancellation. [grpc-rust#2316](https://github.com/grpc/grpc-rust/issues/2316)
/// asks for this.
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
    pub(super) timer: Option<Timer>,
}

impl ClientDeadlineLayer {
    /// What is left is by the clock of the caller's [scope](crate::rpc::Deadline), whose timer ends what leaves the scope. That is the
    /// runtime's timer, unless the scope has one of its own.
    #[must_use]
    pub const fn new() -> ClientDeadlineLayer {
        ClientDeadlineLayer { timer: None }
    }

    /// Both by a timer of your own. Of a scope on another clock, what remains of the deadline counts.
    #[must_use]
    pub fn on(mut self, timer: &Timer) -> ClientDeadlineLayer {
        self.timer = Some(timer.clone());
        self
    }
}

impl<S> Layer<S> for ClientDeadlineLayer {
    type Service = ClientDeadline<S>;

    fn layer(&self, inner: S) -> ClientDeadline<S> {
        ClientDeadline::with(inner, self.clone())
    }
}
