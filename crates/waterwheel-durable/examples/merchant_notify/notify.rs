//! One attempt: a request to the merchant's server.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use waterwheel_durable::Id;

/// Posts a notification. The timer's id is the idempotency key: it is the same in every attempt, so the merchant can tell a repeated notification from a new one.
///
/// # Errors
///
/// The error of the connection, or the server's status if it is not 200.
pub(crate) async fn post(address: SocketAddr, id: Id, body: &[u8]) -> io::Result<()> {
    let mut connection = BufReader::new(TcpStream::connect(address).await?);
    let head = format!(
        "POST /paid HTTP/1.1\r\nHost: {address}\r\nIdempotency-Key: {id}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).await?;
    connection.write_all(body).await?;
    let mut status = String::new();
    connection.read_line(&mut status).await?;
    match status.split_once(' ') {
        Some((_, code)) if code.starts_with("200") => Ok(()),
        Some((_, code)) => Err(io::Error::other(format!(
            "the merchant answered {}",
            code.trim_end()
        ))),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
