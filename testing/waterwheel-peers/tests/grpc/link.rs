//! A server that asks the next one: the messages, the handler, and the code that tonic would generate around it.

use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hyper::body::Incoming;
use tonic::body::Body;
use tonic::codegen::http::{self, uri::PathAndQuery};
use tonic::codegen::{BoxFuture, Service};
use tonic::{IntoRequest, Request, Response, Status, client, server};
use tonic_prost::ProstCodec;
use tower::ServiceBuilder;
use waterwheel::rpc::Deadline;
use waterwheel::tower::{ClientDeadline, ClientDeadlineLayer, Respond, RespondLayer};
use waterwheel::{Duration, Instant};

use crate::wire::Channel;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Ask {
    /// Whether the last server never answers.
    #[prost(bool, tag = "1")]
    pub(crate) forever: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Answer {
    /// The servers that the request passed through, in order.
    #[prost(string, repeated, tag = "1")]
    pub(crate) path: Vec<String>,
    /// The time that each of them had left until its deadline, in microseconds, if it had one.
    #[prost(uint64, repeated, tag = "2")]
    pub(crate) left: Vec<u64>,
}

/// Sends requests on an HTTP/2 connection, and passes the current deadline on.
#[derive(Clone)]
pub(crate) struct Client(client::Grpc<Respond<ClientDeadline<Channel>>>);

impl Client {
    pub(crate) fn new(channel: Channel) -> Client {
        let origin = http::Uri::from_static("http://localhost");
        let channel = ServiceBuilder::new()
            // The outer layer, so that calls that the inner one ends get the right status.
            .layer(RespondLayer::grpc())
            .layer(ClientDeadlineLayer::new())
            .service(channel);
        Client(client::Grpc::with_origin(channel, origin))
    }

    pub(crate) async fn ask(&mut self, ask: impl IntoRequest<Ask>) -> Result<Answer, Status> {
        let ready = self.0.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = PathAndQuery::from_static("/peers.Chain/Ask");
        let answer = self
            .0
            .unary(ask.into_request(), path, ProstCodec::default());
        answer.await.map(Response::into_inner)
    }
}

/// The handler: calls the next server, if there is one.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) name: &'static str,
    pub(crate) next: Option<Client>,
    pub(crate) handlers: Handlers,
}

impl Link {
    async fn answer(self, ask: Ask) -> Result<Answer, Status> {
        let _running = self.handlers.begin();
        let mut answer = Answer {
            path: vec![self.name.to_owned()],
            left: Vec::from_iter(Deadline::current().remaining().map(micros)),
        };
        match self.next {
            Some(mut next) => {
                let further = next.ask(ask).await?;
                answer.path.extend(further.path);
                answer.left.extend(further.left);
            }
            None if ask.forever => pending::<()>().await,
            None => {}
        }
        Ok(answer)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The handlers of a server: how many are running, neither done nor dropped, and when the last one ended.
#[derive(Clone, Default)]
pub(crate) struct Handlers(Arc<Mutex<(usize, Option<Instant>)>>);

impl Handlers {
    pub(crate) fn running(&self) -> usize {
        self.lock().0
    }

    pub(crate) fn last_end(&self) -> Option<Instant> {
        self.lock().1
    }

    fn begin(&self) -> Running {
        self.lock().0 += 1;
        Running(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, (usize, Option<Instant>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Running(Handlers);

impl Drop for Running {
    fn drop(&mut self) {
        let mut handlers = self.0.lock();
        handlers.0 -= 1;
        handlers.1 = Some(Instant::now());
    }
}

/// The handler as a service of messages.
struct Unary(Link);

impl Service<Request<Ask>> for Unary {
    type Response = Response<Answer>;
    type Error = Status;
    type Future = BoxFuture<Response<Answer>, Status>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, ask: Request<Ask>) -> Self::Future {
        let answer = self.0.clone().answer(ask.into_inner());
        Box::pin(async { answer.await.map(Response::new) })
    }
}

/// The handler as a service of HTTP requests.
impl Service<http::Request<Incoming>> for Link {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Incoming>) -> Self::Future {
        let unary = Unary(self.clone());
        Box::pin(async {
            let mut grpc = server::Grpc::new(ProstCodec::default());
            Ok(grpc.unary(unary, request).await)
        })
    }
}
