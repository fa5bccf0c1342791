//! The merchants' servers, on loopback: one that fails now and then, one that is down.

use std::collections::{HashMap, HashSet};
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
    /// The run of the program that it belongs to: a kept file may have timers of an earlier run.
    run: u64,
    is_down: AtomicBool,
    requests: AtomicU64,
    book: Mutex<Book>,
}

/// The payments that a merchant knows.
#[derive(Default)]
struct Book {
    /// The idempotency keys of all requests that were booked.
    keys: HashSet<String>,
    /// How often each payment of this run was booked.
    booked: HashMap<usize, u32>,
    /// How many requests of this run had a known key, and were not booked again.
    repeated: u64,
}

impl Endpoint {
    /// Every third request fails, and all of them as long as the server is down. Some of the others are booked, but their answers are lost.
    pub(crate) async fn start(run: u64, is_down: bool) -> io::Result<Endpoint> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = Endpoint(Arc::new(Inside {
            address: listener.local_addr()?,
            run,
            is_down: AtomicBool::new(is_down),
            requests: AtomicU64::new(0),
            book: Mutex::default(),
        }));
        let served = endpoint.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let served = served.clone();
                // A broken connection is a failure for the client, which retries.
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

    /// The number of requests received and of bookings made.
    pub(crate) fn seen(&self) -> (u64, u32) {
        let requests = self.0.requests.load(Ordering::SeqCst);
        (requests, self.0.book.lock().unwrap().booked.values().sum())
    }

    /// Whether each of this many payments of this run was booked.
    pub(crate) fn has_all(&self, payments: usize) -> bool {
        self.0.book.lock().unwrap().booked.len() == payments
    }

    /// How many of this many payments of this run were booked exactly once.
    pub(crate) fn booked_once(&self, payments: usize) -> usize {
        let booked = &self.0.book.lock().unwrap().booked;
        (0..payments)
            .filter(|it| booked.get(it) == Some(&1))
            .count()
    }

    /// How many requests of this run repeated one that was booked before.
    pub(crate) fn repeated(&self) -> u64 {
        self.0.book.lock().unwrap().repeated
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
        let Some(status) = self.answer(key, &body)? else {
            // The connection is cut before the answer.
            return Ok(());
        };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        connection.write_all(answer.as_bytes()).await?;
        connection.shutdown().await
    }

    fn answer(&self, key: String, body: &[u8]) -> io::Result<Option<&'static str>> {
        let (run, payment) = serde_json::from_slice::<(u64, usize)>(body)?;
        let number = self.0.requests.fetch_add(1, Ordering::SeqCst);
        if self.0.is_down.load(Ordering::SeqCst) || number.is_multiple_of(3) {
            return Ok(Some("503 Service Unavailable"));
        }
        let mut book = self.0.book.lock().unwrap();
        // A request whose key is known was booked before.
        let is_new = book.keys.insert(key);
        if run == self.0.run {
            match is_new {
                true => *book.booked.entry(payment).or_default() += 1,
                false => book.repeated += 1,
            }
        }
        Ok((number % 10 != 7).then_some("200 OK"))
    }
}
