//! The behaviour of hyper without a timer. The docs of our adapter (`src/integration/hyper.rs`) say the same.

use std::convert::Infallible;

use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use waterwheel::Timer;

use crate::frames::client_begins;
use crate::support::{current_thread, ms, panic_of, poll_once};

async fn answer(_: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
    Ok(Response::new(Empty::new()))
}

fn stream() -> TokioIo<DuplexStream> {
    TokioIo::new(duplex(64).0)
}

#[test]
fn hyper_panics_on_a_header_read_timeout_without_a_timer() {
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(ms(100));
    let panicked = panic_of(|| builder.serve_connection(stream(), service_fn(answer)));
    let expected = "timeout `header_read_timeout` set, but no timer set";
    assert_eq!(panicked.message, expected);
    // With our timer, hyper does not panic.
    let runtime = current_thread();
    let timer = Timer::builder().start_on(runtime.handle()).unwrap();
    builder.timer(timer.clone());
    let mut connection = builder.serve_connection(stream(), service_fn(answer));
    let _entered = runtime.enter();
    let _ = poll_once(&mut connection);
}

#[test]
fn hyper_leaves_its_own_default_out_without_a_timer() {
    let builder = http1::Builder::new();
    drop(builder.serve_connection(stream(), service_fn(answer)));
}

#[test]
fn hyper_panics_on_keep_alive_without_a_timer() {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.keep_alive_interval(ms(100));
    let panicked = panic_of(|| {
        current_thread().block_on(async {
            let (server, mut client) = duplex(1024);
            client.write_all(&client_begins()).await.unwrap();
            let _ = builder
                .serve_connection(TokioIo::new(server), service_fn(answer))
                .await;
        });
    });
    assert_eq!(panicked.message, "You must supply a timer.");
}
