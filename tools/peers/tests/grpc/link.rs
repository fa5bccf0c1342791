//! A server that asks the next one: the messages, the handler, and what tonic would generate around it.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use hyper::body::Incoming;
use tonic::body::Body;
use tonic::codegen::http::{self, uri::PathAndQuery};
use tonic::codegen::{BoxFuture, Service};
use tonic::{Request, Response, Status, client, server};
use tonic_prost::ProstCodec;

use crate::wire::Channel;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Ask {
    /// The last server never answers.
    #[prost(bool, tag = "1")]
    pub(crate) forever: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Answer {
    /// The servers that it went through, the first one first.
    #[prost(string, repeated, tag = "1")]
    pub(crate) path: Vec<String>,
}

/// Asks by an HTTP/2 connection. A layer around the channel goes here.
#[derive(Clone)]
pub(crate) struct Client(client::Grpc<Channel>);

impl Client {
    pub(crate) fn new(channel: Channel) -> Client {
        let origin = http::Uri::from_static("http://localhost");
        Client(client::Grpc::with_origin(channel, origin))
    }

    pub(crate) async fn ask(&mut self, ask: Ask) -> Result<Answer, Status> {
        let ready = self.0.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = PathAndQuery::from_static("/peers.Chain/Ask");
        let answer = self.0.unary(Request::new(ask), path, ProstCodec::default());
        answer.await.map(Response::into_inner)
    }
}

/// The handler: asks the next server, if there is one.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) name: &'static str,
    pub(crate) next: Option<Client>,
    pub(crate) handlers: Handlers,
}

impl Link {
    async fn answer(self, ask: Ask) -> Result<Answer, Status> {
        let _running = self.handlers.begin();
        let mut path = vec![self.name.to_owned()];
        match self.next {
            Some(mut next) => path.extend(next.ask(ask).await?.path),
            None if ask.forever => pending::<()>().await,
            None => {}
        }
        Ok(Answer { path })
    }
}

/// How many handlers of a server are running: begun, and neither done nor dropped.
#[derive(Clone, Default)]
pub(crate) struct Handlers(Arc<AtomicUsize>);

impl Handlers {
    pub(crate) fn running(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn begin(&self) -> Running {
        self.0.fetch_add(1, Ordering::SeqCst);
        Running(self.clone())
    }
}

struct Running(Handlers);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// As a service of messages.
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

/// As a service of HTTP. A layer around the server goes around this.
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
