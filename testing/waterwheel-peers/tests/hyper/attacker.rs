//! Clients that hold a connection and break the rules: plain sockets on plain threads.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use waterwheel::{Duration, Instant};

use crate::support::ms;

/// How often a slowloris client sends a byte.
pub(crate) const DRIP: Duration = ms(20);

pub(crate) struct Attacker {
    stream: TcpStream,
    /// The bytes that the server has sent.
    pub(crate) received: Vec<u8>,
}

impl Attacker {
    pub(crate) fn connect(address: SocketAddr) -> Attacker {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(DRIP)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Attacker {
            stream,
            received: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("an open connection");
    }

    /// Reads until the expected text has arrived.
    pub(crate) fn receive(&mut self, expected: &str) {
        let start = Instant::now();
        while !String::from_utf8_lossy(&self.received).contains(expected) {
            let is_open = self.read() && start.elapsed() < Duration::from_secs(10);
            assert!(is_open, "no {expected:?} in {:?}", self.received);
        }
    }

    /// Sends these bytes one at a time, and returns when the server ends the connection. `None` if it is open
    /// at `until`.
    pub(crate) fn cut_by(
        &mut self,
        until: Instant,
        mut slowly: impl Iterator<Item = u8>,
    ) -> Option<Instant> {
        while Instant::now() < until {
            if let Some(byte) = slowly.next() {
                // If the connection has ended, the read sees it as well.
                let _ = self.stream.write(&[byte]);
            }
            if !self.read() {
                return Some(Instant::now());
            }
        }
        None
    }

    /// Reads the bytes that arrive within `DRIP`. Returns whether the connection is open.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(length) => {
                self.received.extend_from_slice(&buffer[..length]);
                true
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }
}

/// Runs `act` on this many threads at once, and returns the latest of the instants.
pub(crate) fn latest_of(count: usize, act: impl Fn() -> Instant + Sync) -> Instant {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(&act)).collect();
        let instants = threads.into_iter().map(|thread| thread.join());
        instants.map(|it| it.expect("it does not panic")).max()
    })
    .expect("one at least")
}
