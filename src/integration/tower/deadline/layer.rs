use http::HeaderMap;
use tokio::time::Duration;
use tower_layer::Layer;

use super::ServerDeadline;
use crate::Timer;
use crate::integration::tower::grpc;
use crate::rpc::{self, Deadline};

/// The server's side of a deadline: gives each request its own, by the header `grpc-timeout` and a cap of the server's.
/// The client's side is [`ClientDeadlineLayer`](crate::tower::ClientDeadlineLayer).
///
/// The smaller of the two counts, and without a header the cap alone. Within a [scope](Deadline::scope) of the caller, the earlier
/// deadline counts. It is [`Deadline::current`] in the inner service's `call`, in its future, and in the response body whenever that is
/// polled; and it ends the future or the body with [`Elapsed`](crate::error::Elapsed). The future is polled first: if it is ready, it
/// wins, even past the deadline.
///
/// For a request whose deadline has passed when it comes, as by the header `0n`, the inner service is not called, since the client no
/// longer waits; the call fails with `Elapsed`.
///
/// A body is ended when it is polled, and a server does not poll the body for a client that has stopped reading:
/// limit the connection as well, as [the module](crate::tower) says.
///
/// A header that [`grpc_timeout::parse`](crate::rpc::grpc_timeout::parse) does not take sets no deadline, as if there were none; the
/// cap remains. With the feature `tracing`, an event of the level DEBUG says so. Of several headers the first counts.
///
/// It suits any HTTP server: without the header, it is an [`HttpTimeoutLayer`](crate::tower::HttpTimeoutLayer) whose limit is known to what
/// it limits. Put [`RespondLayer`](crate::tower::RespondLayer) outside of it. The docs of [the module](crate::tower) have an example, errors, panics and
/// cancellation.
///
/// The idea is that of the contexts in grpc-go and grpc-java, and of tonic's server, whose timeout ends with the headers and is not
/// known to the handler.
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
    pub(super) timer: Option<Timer>,
}

impl DeadlineLayer {
    /// Takes the client's deadline whatever it is, on the runtime's timer, or on that of the caller's [scope](Deadline) if the scope has one.
    #[must_use]
    pub const fn new() -> DeadlineLayer {
        DeadlineLayer {
            cap: None,
            timer: None,
        }
    }

    /// At most so long from the call on, also for requests without the header.
    #[must_use]
    pub const fn cap(mut self, cap: Duration) -> DeadlineLayer {
        self.cap = Some(cap);
        self
    }

    /// Runs on a timer of your own, and makes that the timer of the [scope](Deadline): within it, deadlines are by its clock,
    /// [`Timer::now`]. Of a scope around it on another clock, what remains of the deadline counts.
    #[must_use]
    pub fn on(mut self, timer: &Timer) -> DeadlineLayer {
        self.timer = Some(timer.clone());
        self
    }

    /// The deadline of a request with these headers that comes now, by the clock of this timer or of the runtime's.
    pub(super) fn deadline_of(&self, headers: &HeaderMap, timer: Option<&Timer>) -> Deadline {
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

impl<S> Layer<S> for DeadlineLayer {
    type Service = ServerDeadline<S>;

    fn layer(&self, inner: S) -> ServerDeadline<S> {
        ServerDeadline::with(inner, self.clone())
    }
}
