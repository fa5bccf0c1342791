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
    /// Which run of the program it is of: a file that is kept may have timers of an earlier one.
    run: u64,
    is_down: AtomicBool,
    requests: AtomicU64,
    book: Mutex<Book>,
}

/// What a merchant has of its customers' payments.
#[derive(Default)]
struct Book {
    /// The idempotency keys that it knows.
    keys: HashSet<String>,
    /// How often each payment of this run was booked.
    booked: HashMap<usize, u32>,
}

impl Endpoint {
    /// Each third request fails; all of them, as long as the server is down. Of the others, some are booked and their answers are lost.
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

    /// How many requests came, and how many bookings were made.
    pub(crate) fn seen(&self) -> (u64, u32) {
        let requests = self.0.requests.load(Ordering::SeqCst);
        (requests, self.0.book.lock().unwrap().booked.values().sum())
    }

    /// Whether each of the first so many payments of this run was booked.
    pub(crate) fn has_all(&self, payments: usize) -> bool {
        self.0.book.lock().unwrap().booked.len() == payments
    }

    /// Whether each of the first so many payments of this run was booked, and none of them twice.
    pub(crate) fn has_each_once(&self, payments: usize) -> bool {
        let booked = &self.0.book.lock().unwrap().booked;
        booked.len() == payments && (0..payments).all(|it| booked.get(&it) == Some(&1))
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
        // One that came before is booked once: its key says so.
        if book.keys.insert(key) && run == self.0.run {
            *book.booked.entry(payment).or_default() += 1;
        }
        Ok((number % 10 != 7).then_some("200 OK"))
    }
}
