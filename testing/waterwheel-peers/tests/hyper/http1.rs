//! The header-read timeout of a server: it ends slow clients, silent clients, and idle keep-alive connections.

use std::io::{Read, Result, Write};
use std::iter;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use waterwheel::{Duration, Instant};

use crate::attacker::{Attacker, latest_of};
use crate::rounds::{Limit, is_cut_within};
use crate::server::Server;
use crate::support::{HOUR, ms};

const HEADER_READ_TIMEOUT: Duration = ms(300);
/// The maximum lateness.
const LATE: Duration = ms(100);
const ATTACKERS: usize = 4;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// The beginning of a request whose header never ends.
const SLOW: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";

#[test]
fn a_slowloris_client_is_cut_at_the_header_read_timeout() {
    is_cut_at_the_timeout(SLOW, || iter::repeat(b'a'));
}

#[test]
fn a_silent_client_is_cut_at_the_header_read_timeout() {
    is_cut_at_the_timeout(b"", iter::empty);
}

// The timeout covers more than the request's header.
#[test]
fn an_idle_keep_alive_connection_is_cut_as_well() {
    let server = Server::http1(HEADER_READ_TIMEOUT);
    is_cut_within(LATE, || {
        let ((limit, cut), served) = beside_a_polite_client(server.address, || {
            let mut idle = Attacker::connect(server.address);
            // The server begins to wait for the next header after it has written the answer, not when a request arrives.
            let asked = Instant::now();
            idle.send(REQUEST);
            idle.receive("served");
            let limit = Limit::at(asked + HEADER_READ_TIMEOUT);
            let cut = limit.was_kept(idle.cut_by(limit.patience(), iter::empty()));
            (limit, cut)
        });
        limit.round(cut, served)
    });
    assert!(server.timer.metrics().fired() > 0);
}

#[test]
fn no_client_is_cut_while_the_limit_is_far_away() {
    let server = Server::http1(HOUR);
    let [mut slow, mut silent, mut idle] = [(); 3].map(|()| Attacker::connect(server.address));
    slow.send(SLOW);
    idle.send(REQUEST);
    idle.receive("served");
    idle.received.clear();
    let until = Instant::now() + HEADER_READ_TIMEOUT * 3;
    let ((), served) = beside_a_polite_client(server.address, || {
        thread::scope(|scope| {
            for idle in [&mut silent, &mut idle] {
                scope.spawn(|| assert_eq!(idle.cut_by(until, iter::empty()), None));
            }
            assert_eq!(slow.cut_by(until, iter::repeat(b'a')), None);
        });
    });
    assert!(served);
    // In the end each of them gets its answer.
    slow.send(b"\r\n\r\n");
    for mut client in [silent, idle] {
        client.send(REQUEST);
        client.receive("served");
    }
    slow.receive("served");
    let metrics = server.timer.metrics();
    assert!(metrics.armed() >= 3, "{metrics}");
    assert_eq!(metrics.fired(), 0, "{metrics}");
}

/// Checks that clients that begin with these bytes and continue slowly are cut at the timeout.
#[track_caller]
fn is_cut_at_the_timeout<I: Iterator<Item = u8>>(begin: &[u8], slowly: impl Fn() -> I + Sync) {
    let server = Server::http1(HEADER_READ_TIMEOUT);
    let mut attackers = 0;
    is_cut_within(LATE, || {
        let limit = Limit::at(Instant::now() + HEADER_READ_TIMEOUT);
        let (cut, served) = beside_a_polite_client(server.address, || {
            latest_of(ATTACKERS, || {
                let mut attacker = Attacker::connect(server.address);
                attacker.send(begin);
                let cut = attacker.cut_by(limit.patience(), slowly());
                assert_eq!(attacker.received, b"", "it is cut without a word");
                limit.was_kept(cut)
            })
        });
        attackers += ATTACKERS;
        limit.round(cut, served)
    });
    // It was our timer that fired.
    let metrics = server.timer.metrics();
    assert!(metrics.fired() >= attackers as u64, "{metrics}");
}

/// Runs `act` while a client sends requests again and again, each on a new connection. Also returns whether it got its answers.
fn beside_a_polite_client<R>(address: SocketAddr, act: impl FnOnce() -> R) -> (R, bool) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let polite = scope.spawn(|| {
            let mut answers = Vec::new();
            while !is_over.load(Ordering::SeqCst) {
                answers.push(is_served(address).unwrap_or(false));
                thread::sleep(ms(5));
            }
            !answers.is_empty() && answers.into_iter().all(|it| it)
        });
        let over = Over(&is_over);
        let result = act();
        drop(over);
        (result, polite.join().expect("it does not panic"))
    })
}

/// Ends the polite client, also if the test fails meanwhile.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn is_served(address: SocketAddr) -> Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.ends_with("served"))
}
