//! hyper's servers as in a service, each with its own `Timer`.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use waterwheel::{Duration, Timer};

type Stream = TokioIo<TcpStream>;

/// A server that answers each request. It ends when it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// hyper's timer, which nothing else uses.
    pub(crate) timer: Timer,
    pub(crate) connections: Arc<Connections>,
    _runtime: Runtime,
}

/// The number of connections.
#[derive(Default)]
pub(crate) struct Connections {
    accepted: AtomicUsize,
    ended: AtomicUsize,
}

impl Server {
    /// HTTP/1: a request's header must arrive within `header_read_timeout`.
    pub(crate) fn http1(header_read_timeout: Duration) -> Server {
        Server::start(move |stream, timer| async move {
            let mut builder = http1::Builder::new();
            builder.timer(timer);
            builder.header_read_timeout(header_read_timeout);
            let _ = builder.serve_connection(stream, service_fn(answer)).await;
        })
    }

    /// HTTP/2: after `interval` without a frame, the client must answer a PING within `timeout`.
    pub(crate) fn http2(interval: Duration, timeout: Duration) -> Server {
        Server::start(move |stream, timer| async move {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder.timer(timer);
            builder.keep_alive_interval(interval);
            builder.keep_alive_timeout(timeout);
            let _ = builder.serve_connection(stream, service_fn(answer)).await;
        })
    }

    fn start<S, F>(serve: S) -> Server
    where
        S: Fn(Stream, Timer) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let timer = Timer::builder().start_on(runtime.handle());
        let timer = timer.expect("a timer");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(Connections::default());
        runtime.spawn({
            let (timer, connections) = (timer.clone(), Arc::clone(&connections));
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    connections.accepted.fetch_add(1, Ordering::SeqCst);
                    let served = serve(TokioIo::new(stream), timer.clone());
                    let connections = Arc::clone(&connections);
                    tokio::spawn(async move {
                        served.await;
                        connections.ended.fetch_add(1, Ordering::SeqCst);
                    });
                }
            }
        });
        Server {
            address,
            timer,
            connections,
            _runtime: runtime,
        }
    }
}

impl Connections {
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(crate) fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }
}

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("served")))
}
