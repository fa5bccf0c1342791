//! reqwest accepts no timer: its own timeouts are tokio's. Our limit goes around the call, as a future or as a layer, and around the
//! connector, as a layer.

use std::error::Error;
use std::future::pending;
use std::io::{Read, Write};
use std::iter;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::{Client, Method, Request, Result, Url};
use tokio::sync::oneshot;
use tower::{Layer, Service};
use waterwheel::error::Elapsed;
use waterwheel::tower::TimeoutLayer;
use waterwheel::{Duration, ManualClock, Timer, timeout};

use crate::support::LIMIT;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_limit_around_reqwest_covers_the_body_too() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).start().unwrap();
    let half = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nser");
    let (head, has_come) = oneshot::channel();
    let fetched = tokio::spawn(timer.timeout(MINUTE, fetch(client(), half, head)));
    has_come.await.expect("the head");
    clock.advance(MINUTE);
    in_time(fetched).await.unwrap().expect_err("half of a body");
}

#[tokio::test]
async fn a_limit_around_reqwest_lets_an_answer_through() {
    let prompt = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nserved");
    let limited = timeout(MINUTE, fetch(client(), prompt, oneshot::channel().0)).await;
    assert_eq!(limited.expect("in time").expect("an answer"), "served");
    assert_eq!(Timer::current().metrics().cancelled(), 1);
}

#[tokio::test]
async fn a_layer_around_reqwest_limits_the_time_to_the_head() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).start().unwrap();
    let layer = TimeoutLayer::new(MINUTE).on(&timer);
    let mut limited = layer.layer(client());
    let request = Request::new(Method::GET, url(serve(b"")));
    let answer = tokio::spawn(async move { limited.call(request).await });
    in_time(armed(&timer)).await;
    clock.advance(MINUTE);
    let error = in_time(answer).await.unwrap().expect_err("no answer");
    assert!(error.is::<Elapsed>(), "{error}");
}

#[tokio::test]
async fn a_layer_of_the_connector_limits_the_time_to_connect() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).start().unwrap();
    let client = Client::builder()
        .no_proxy()
        .dns_resolver(Arc::new(NeverResolves))
        .connector_layer(TimeoutLayer::new(MINUTE).on(&timer));
    let client = client.build().expect("a client");
    let answer = tokio::spawn(client.get("http://peer.localhost/").send());
    in_time(armed(&timer)).await;
    clock.advance(MINUTE);
    let error = in_time(answer).await.unwrap().expect_err("no connection");
    assert!(error.is_connect(), "{error:?}");
    let mut causes = iter::successors(Some(&error as &dyn Error), |&it| it.source());
    assert!(causes.any(|it| it.is::<Elapsed>()), "{error:?}");
}

/// A resolver that never answers.
struct NeverResolves;

impl Resolve for NeverResolves {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(pending())
    }
}

/// Limits a future by tokio's timer, so that a lost limit fails the test.
async fn in_time<F: Future>(future: F) -> F::Output {
    let limited = tokio::time::timeout(LIMIT, future);
    limited.await.expect("a limit of ours")
}

/// Waits until the limit is armed.
async fn armed(timer: &Timer) {
    while timer.metrics().pending() == 0 {
        tokio::task::yield_now().await;
    }
}

fn url(address: SocketAddr) -> Url {
    format!("http://{address}/").parse().expect("a URL")
}

/// A client that ignores proxies from the environment, which would receive requests to the loopback address.
fn client() -> Client {
    Client::builder().no_proxy().build().expect("a client")
}

/// Fetches the header and the body within one future: a limit around `send` alone ends with the header.
async fn fetch(client: Client, from: SocketAddr, head: oneshot::Sender<()>) -> Result<String> {
    let response = client.get(url(from)).send().await?;
    let _ = head.send(());
    response.text().await
}

/// Answers one request with these bytes, and then waits for the client to end the connection.
fn serve(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut request = [0; 1024];
        let _ = stream.read(&mut request);
        let _ = stream.write_all(answer);
        while let Ok(1..) = stream.read(&mut request) {}
    });
    address
}
