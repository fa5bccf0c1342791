//! hyper-util's client: its pool and its HTTP/2 keep-alive, on a clock that the test controls.

use std::error::Error;
use std::io::{Read, Write};
use std::iter;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::runtime::{Builder, Runtime};
use waterwheel::{Duration, ManualClock, Timer};

use crate::frames::{PREFACE, SETTINGS, pings};
use crate::server::Server;
use crate::support::{HOUR, LIMIT, eventually, ms};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn the_pool_ends_idle_connections_by_our_clock() {
    let server = Server::http1(HOUR);
    let (runtime, clock, timer) = by_hand();
    let client: Client<HttpConnector, Empty<Bytes>> = Client::builder(TokioExecutor::new())
        .pool_timer(timer.clone())
        .pool_idle_timeout(MINUTE)
        .build_http();
    let ask = || {
        let answer = runtime.block_on(ask(&client, server.address));
        assert_eq!(answer.expect("an answer"), "served");
    };

    ask();
    eventually("the pool waits", || timer.metrics().pending() == 1);
    clock.advance(MINUTE - ms(1));
    ask();
    assert_eq!(server.connections.accepted(), 1);
    assert_eq!(timer.metrics().fired(), 0);

    // The pool looks once a minute for connections that have been idle for more than one.
    for _ in 0..4 {
        eventually("the pool waits, or has none left", || {
            timer.metrics().pending() == 1 || server.connections.ended() == 1
        });
        clock.advance(MINUTE);
    }
    eventually("it is ended", || server.connections.ended() == 1);
    ask();
    assert_eq!(server.connections.accepted(), 2);
}

#[test]
fn the_clients_keep_alive_runs_by_our_clock() {
    let deaf = Deaf::start();
    let (runtime, clock, timer) = by_hand();
    let client: Client<HttpConnector, Empty<Bytes>> = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .timer(timer.clone())
        // Otherwise hyper begins only if its connection is polled once more after the request has begun, and a second
        // worker may have polled it before.
        .http2_keep_alive_while_idle(true)
        .http2_keep_alive_interval(MINUTE)
        .http2_keep_alive_timeout(ms(20_000))
        .build_http();
    let address = deaf.address;
    let asked = runtime.spawn(async move { ask(&client, address).await });

    eventually("keep-alive waits", || timer.metrics().pending() == 1);
    clock.advance(MINUTE - ms(1));
    assert_eq!((timer.metrics().fired(), deaf.pings()), (0, 0));
    clock.advance(ms(1));
    eventually("a PING", || deaf.pings() == 1);
    eventually("its answer is awaited", || timer.metrics().armed() == 2);
    clock.advance(ms(19_999));
    assert_eq!(timer.metrics().fired(), 1);
    assert!(!asked.is_finished());
    clock.advance(ms(1));
    // Limited by tokio's timer, so that a lost limit fails the test.
    let asked = runtime.block_on(async { tokio::time::timeout(LIMIT, asked).await });
    let asked = asked.expect("it is cut").expect("it does not panic");
    let error: Box<dyn Error> = asked.expect_err("no answer");
    let mut causes = iter::successors(Some(&*error), |&it| it.source());
    assert!(
        causes.any(|it| it.to_string() == "keep-alive timed out"),
        "{error:?}"
    );
}

/// A runtime, and a timer whose clock stands still.
fn by_hand() -> (Runtime, ManualClock, Timer) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let clock = ManualClock::new();
    let builder = Timer::builder().clock(clock.clone());
    let timer = builder.start_on(runtime.handle()).expect("a timer");
    (runtime, clock, timer)
}

type Failure = Box<dyn Error + Send + Sync>;

async fn ask(
    client: &Client<HttpConnector, Empty<Bytes>>,
    address: SocketAddr,
) -> Result<Bytes, Failure> {
    let answer = client.get(format!("http://{address}/").parse()?).await?;
    Ok(answer.into_body().collect().await?.to_bytes())
}

/// An HTTP/2 server that sends its settings, and then nothing.
struct Deaf {
    address: SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Deaf {
    fn start() -> Deaf {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let received = Arc::new(Mutex::new(Vec::new()));
        thread::spawn({
            let received = Arc::clone(&received);
            move || {
                let (mut stream, _) = listener.accept().expect("a connection");
                stream.write_all(&SETTINGS).expect("an open connection");
                let mut buffer = [0; 1024];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
                    received.extend_from_slice(&buffer[..length]);
                }
            }
        });
        Deaf { address, received }
    }

    fn pings(&self) -> usize {
        let received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        pings(received.get(PREFACE.len()..).unwrap_or_default())
    }
}
