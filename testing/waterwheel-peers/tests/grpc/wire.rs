//! The HTTP/2 layer: hyper's server and client, with our timer.

use std::net::SocketAddr;
use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::server::conn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{BoxFuture, Service, StdError};
use tower::ServiceBuilder;
use waterwheel::Timer;
use waterwheel::tower::{DeadlineLayer, RespondLayer};

/// Serves this on a loopback port, and reads the client's deadline.
pub(crate) async fn serve<S>(service: S) -> SocketAddr
where
    S: Service<Request<Incoming>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<StdError>,
{
    let service = ServiceBuilder::new()
        .layer(RespondLayer::grpc())
        .layer(DeadlineLayer::new())
        .service(service);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            at_once(&stream);
            let service = TowerToHyperService::new(service.clone());
            let mut builder = conn::http2::Builder::new(TokioExecutor::new());
            builder.timer(Timer::current());
            tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

/// Sends small frames at once. Otherwise a frame waits for the acknowledgement of the previous one, which takes the peer up to 40 ms.
fn at_once(stream: &TcpStream) {
    stream.set_nodelay(true).expect("an open socket");
}

/// A client's connection.
#[derive(Clone)]
pub(crate) struct Channel(SendRequest<Body>);

impl Channel {
    pub(crate) async fn to(address: SocketAddr) -> Channel {
        let stream = TcpStream::connect(address).await.expect("a connection");
        at_once(&stream);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.timer(Timer::current());
        let handshake = builder.handshake(TokioIo::new(stream)).await;
        let (requests, connection) = handshake.expect("a handshake");
        tokio::spawn(connection);
        Channel(requests)
    }
}

impl Service<Request<Body>> for Channel {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<Response<Incoming>, hyper::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
