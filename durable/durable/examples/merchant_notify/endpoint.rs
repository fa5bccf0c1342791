//! The merchants' servers, on loopback: one that fails now and then, one that is down.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A merchant's server.
#[derive(Clone)]
pub(crate) struct Endpoint(Arc<Inside>);

struct Inside {
    address: SocketAddr,
    is_down: AtomicBool,
    requests: AtomicU64,
    /// How often each notification was taken, by its idempotency key.
    taken: Mutex<HashMap<String, u32>>,
}

impl Endpoint {
    /// Each third request fails; all of them, as long as the server is down.
    pub(crate) async fn start(is_down: bool) -> io::Result<Endpoint> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = Endpoint(Arc::new(Inside {
            address: listener.local_addr()?,
            is_down: AtomicBool::new(is_down),
            requests: AtomicU64::new(0),
            taken: Mutex::default(),
        }));
        let served = endpoint.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let served = served.clone();
                // A connection that breaks is the client's failure, which it tries again.
                tokio::spawn(async move { served.serve(connection).await });
            }
        });
        Ok(endpoint)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address
    }

    pub(crate) fn repair(&self) {
        self.0.is_down.store(false, Ordering::SeqCst);
    }

    /// How many requests came, and how many notifications were taken.
    pub(crate) fn seen(&self) -> (u64, usize) {
        let requests = self.0.requests.load(Ordering::SeqCst);
        (requests, self.0.taken.lock().unwrap().len())
    }

    async fn serve(&self, connection: TcpStream) -> io::Result<()> {
        let mut connection = BufReader::new(connection);
        let (mut length, mut key) = (0, String::new());
        loop {
            let mut line = String::new();
            connection.read_line(&mut line).await?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                if line.trim_end().is_empty() {
                    break;
                }
                continue;
            };
            match name {
                "Content-Length" => length = value.parse().unwrap_or(0),
                "Idempotency-Key" => key = value.to_owned(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        connection.read_exact(&mut body).await?;
        let status = self.answer(key);
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        connection.write_all(answer.as_bytes()).await?;
        connection.shutdown().await
    }

    fn answer(&self, key: String) -> &'static str {
        let number = self.0.requests.fetch_add(1, Ordering::SeqCst);
        if self.0.is_down.load(Ordering::SeqCst) || number.is_multiple_of(3) {
            return "503 Service Unavailable";
        }
        // One that came before is taken once: its key says so.
        *self.0.taken.lock().unwrap().entry(key).or_default() += 1;
        "200 OK"
    }
}
