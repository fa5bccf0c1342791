//! reqwest has no plug for a timer: its own `timeout` is tokio's. A limit goes around the call, and around the body as well.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use reqwest::{Client, Result};
use tokio::sync::oneshot;
use waterwheel::{Duration, ManualClock, Timer, timeout};

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
    fetched.await.unwrap().expect_err("half of a body");
}

#[tokio::test]
async fn a_limit_around_reqwest_lets_an_answer_through() {
    let prompt = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nserved");
    let limited = timeout(MINUTE, fetch(client(), prompt, oneshot::channel().0)).await;
    assert_eq!(limited.expect("in time").expect("an answer"), "served");
    assert_eq!(Timer::current().metrics().cancelled(), 1);
}

/// One that takes no proxy from the environment, which would be asked for the loopback address.
fn client() -> Client {
    Client::builder().no_proxy().build().expect("a client")
}

/// The head and the body within one future: a limit around `send` alone ends with the head.
async fn fetch(client: Client, from: SocketAddr, head: oneshot::Sender<()>) -> Result<String> {
    let response = client.get(format!("http://{from}/")).send().await?;
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
