//! An HTTP server on waterwheel's timers, and a client that tries to hold it up.
//!
//! ```text
//! cargo run --release -p waterwheel-peers --example hyper_server
//! ```
//!
//! The server's own limits: a time for each request's header, which also ends idle connections, and one for each response, its body
//! included. A client that keeps to the limits is served.

use std::convert::Infallible;
use std::error::Error;
use std::io;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::{ServiceBuilder, service_fn};
use waterwheel::tower::{HttpTimeoutLayer, RespondLayer};
use waterwheel::{Duration, Instant, Timer, sleep};

/// The limit of a request's header, from the end of the previous request.
const HEADER: Duration = Duration::from_millis(300);
/// The limit of a response, from the end of the header to the end of the body.
const RESPONSE: Duration = Duration::from_millis(200);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve(listener));

    let mut polite = TcpStream::connect(address).await?;
    println!("a request:       {}", ask(&mut polite, "/").await?);
    println!("a slow handler:  {}", ask(&mut polite, "/slow").await?);

    // Sends a byte now and then, but never the end of the header.
    let begun = Instant::now();
    let mut slowloris = TcpStream::connect(address).await?;
    let header = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ".iter();
    for byte in header.chain([b'x'].iter().cycle()) {
        if slowloris.write_all(&[*byte]).await.is_err() {
            break;
        }
        sleep(Duration::from_millis(20)).await;
    }
    println!("a slowloris:     cut, it had {:?}", begun.elapsed());
    println!("timers armed:    {}", Timer::current().metrics().armed());
    Ok(())
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    let service = ServiceBuilder::new()
        .layer(RespondLayer::gateway_timeout())
        .layer(HttpTimeoutLayer::new(RESPONSE))
        .service(service_fn(handle));
    loop {
        let (stream, _) = listener.accept().await?;
        let connection = http1::Builder::new()
            .timer(Timer::current())
            .header_read_timeout(HEADER)
            .serve_connection(
                TokioIo::new(stream),
                TowerToHyperService::new(service.clone()),
            );
        tokio::spawn(connection);
    }
}

async fn handle(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path() == "/slow" {
        sleep(Duration::from_secs(3600)).await;
    }
    Ok(Response::new(Full::from("hello")))
}

/// Sends a request on a connection that stays open, and returns the first line of the answer.
async fn ask(stream: &mut TcpStream, path: &str) -> io::Result<String> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer[..length]);
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}
