//! The keep-alive of a server: it ends connections whose client does not answer PINGs.

use std::iter;
use std::thread;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{Request, Result};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use waterwheel::{Duration, Instant};

use crate::attacker::{Attacker, latest_of};
use crate::frames::{client_begins, pings};
use crate::rounds::{Limit, is_cut_within};
use crate::server::Server;
use crate::support::{HOUR, ms};

const INTERVAL: Duration = ms(200);
const TIMEOUT: Duration = ms(200);
/// The maximum lateness.
const LATE: Duration = ms(100);
const ATTACKERS: usize = 4;

#[test]
fn a_client_that_answers_no_ping_is_cut_by_keep_alive() {
    let server = Server::http2(INTERVAL, TIMEOUT);
    let mut cut_by_us = 0;
    is_cut_within(LATE, || {
        let mut polite = Polite::connect(&server);
        let limit = Limit::at(Instant::now() + INTERVAL + TIMEOUT);
        let cut = latest_of(ATTACKERS, || {
            let mut deaf = Attacker::connect(server.address);
            deaf.send(&client_begins());
            let cut = deaf.cut_by(limit.patience(), iter::empty());
            assert_eq!(pings(&deaf.received), 1);
            limit.was_kept(cut)
        });
        cut_by_us += ATTACKERS;
        // The polite client sends no request for longer than that, and answers each PING.
        thread::sleep(INTERVAL + TIMEOUT);
        limit.round(cut, polite.is_served())
    });
    // It was our timer that fired: once for the PING, and once for the missing answer.
    let metrics = server.timer.metrics();
    assert!(metrics.fired() >= 2 * cut_by_us as u64, "{metrics}");
}

#[test]
fn no_deaf_client_is_cut_while_the_limit_is_far_away() {
    let server = Server::http2(INTERVAL, HOUR);
    let mut polite = Polite::connect(&server);
    let mut deaf = Attacker::connect(server.address);
    deaf.send(&client_begins());
    let until = Instant::now() + (INTERVAL + TIMEOUT) * 3;
    assert_eq!(deaf.cut_by(until, iter::empty()), None);
    assert!(pings(&deaf.received) <= 1);
    assert!(polite.is_served());
    assert_eq!(server.connections.ended(), 0);
}

/// One of hyper's clients, on one connection.
struct Polite {
    runtime: Runtime,
    requests: SendRequest<Empty<Bytes>>,
}

impl Polite {
    fn connect(server: &Server) -> Polite {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let requests = runtime.block_on(async {
            let stream = TcpStream::connect(server.address).await;
            let stream = TokioIo::new(stream.expect("a connection"));
            let (requests, connection) = handshake(TokioExecutor::new(), stream)
                .await
                .expect("a handshake");
            tokio::spawn(connection);
            requests
        });
        Polite { runtime, requests }
    }

    fn is_served(&mut self) -> bool {
        let answer: Result<Bytes> = self.runtime.block_on(async {
            let request = Request::get("http://localhost/").body(Empty::new());
            let request = request.expect("a request");
            let answer = self.requests.send_request(request).await?;
            Ok(answer.into_body().collect().await?.to_bytes())
        });
        answer.is_ok_and(|answer| answer == "served")
    }
}
