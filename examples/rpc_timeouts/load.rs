//! One clock's turn: open the connections, keep calls in flight on all of them, stop, and wait for
//! everything to end.

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::client::{self, Client};
use crate::clock::{Books, Clock};
use crate::ledger::{Ledger, Tally};
use crate::plan::Plan;
use crate::report;
use crate::server;

/// How long silent connections are waited for at the end: a busy machine closes them late, and a lost timer never.
const PATIENCE: Duration = Duration::from_secs(30);

/// Connections that are opened at the same time: on a busy machine each waits for the scheduler more than once.
const AT_ONCE: usize = 64;

/// What a turn came to.
pub(crate) struct Outcome {
    pub(crate) clock: &'static str,
    /// How long calls were made: shorter than planned if Ctrl-C cut it.
    pub(crate) load: Duration,
    pub(crate) interrupted: bool,
    pub(crate) tally: Tally,
    pub(crate) silent: u32,
    /// Of the whole process during this turn, where the system says.
    pub(crate) cpu: Option<Duration>,
    pub(crate) books: Option<Books>,
}

pub(crate) async fn run<C: Clock>(
    plan: Arc<Plan>,
    mut interrupted: watch::Receiver<bool>,
) -> io::Result<Outcome> {
    let ledger = Arc::new(Ledger::default());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let closing = CancellationToken::new();
    let server = tokio::spawn(server::serve::<C>(
        listener,
        Arc::clone(&plan),
        Arc::clone(&ledger),
        closing.clone(),
    ));

    let connected = connect::<C>(address, &plan, &ledger).await;
    let Connections {
        clients,
        mut upkeep,
        mut silent,
    } = match connected {
        Ok(connections) => connections,
        Err(error) => {
            closing.cancel();
            // A server that gave up first knows why.
            server.await??;
            return Err(error);
        }
    };

    let cpu_before = cpu_time();
    let started = Instant::now();
    let stopping = Arc::new(AtomicBool::new(false));
    let mut callers = JoinSet::new();
    for client in clients {
        let client = Arc::new(client);
        for _ in 0..plan.concurrency {
            callers.spawn(call_again_and_again::<C>(
                Arc::clone(&client),
                Arc::clone(&plan),
                Arc::clone(&ledger),
                Arc::clone(&stopping),
            ));
        }
    }

    let mut was_interrupted = false;
    {
        let mut progress = Progress::default();
        let mut seconds = pin!(C::heartbeats(Duration::from_secs(1)).skip(1));
        let mut end = pin!(C::sleep(plan.load));
        loop {
            tokio::select! {
                biased;
                Ok(_) = interrupted.wait_for(|&interrupted| interrupted) => {
                    was_interrupted = true;
                    break;
                }
                () = &mut end => break,
                Some(()) = seconds.next() => progress.show(C::NAME, started, &ledger),
                ended = callers.join_next() => match ended {
                    Some(caller) => caller?,
                    // Only if every connection was lost.
                    None => break,
                },
            }
        }
        progress.show(C::NAME, started, &ledger);
        progress.end();
    }
    let load = started.elapsed();

    // From the outside in: the callers let go of the clients, which close their connections, which
    // end the server's.
    stopping.store(true, Relaxed);
    while let Some(caller) = callers.join_next().await {
        caller?;
    }
    while let Some(connection) = upkeep.join_next().await {
        connection?;
    }
    if !was_interrupted {
        was_interrupted = tokio::select! {
            biased;
            Ok(_) = interrupted.wait_for(|&interrupted| interrupted) => true,
            // Those that are open even then fail the self-check.
            _ = tokio::time::timeout(PATIENCE, async {
                while silent.join_next().await.is_some() {}
            }) => false,
        };
    }
    silent.shutdown().await;
    closing.cancel();
    server.await??;

    Ok(Outcome {
        clock: C::NAME,
        load,
        interrupted: was_interrupted,
        tally: ledger.tally(),
        silent: plan.silent,
        cpu: cpu_before.and_then(|before| cpu_time()?.checked_sub(before)),
        books: C::books(),
    })
}

struct Connections {
    clients: Vec<Client>,
    upkeep: JoinSet<()>,
    silent: JoinSet<()>,
}

async fn connect<C: Clock>(
    address: SocketAddr,
    plan: &Arc<Plan>,
    ledger: &Arc<Ledger>,
) -> io::Result<Connections> {
    let mut connections = Connections {
        clients: Vec::new(),
        upkeep: JoinSet::new(),
        silent: JoinSet::new(),
    };
    let failed = |number: u32, error: io::Error| {
        let (number, all) = (number + 1, plan.connections + plan.silent);
        let text = format!(
            "connection {number} of {all} failed: {error} (each takes two file descriptors)"
        );
        io::Error::new(error.kind(), text)
    };
    let mut connecting = stream::iter(0..plan.connections)
        .map(|number| Client::connect::<C>(address, number, Arc::clone(plan), Arc::clone(ledger)))
        .buffered(AT_ONCE);
    while let Some(connected) = connecting.next().await {
        let number = connections.clients.len() as u32;
        let (client, upkeep) = connected.map_err(|error| failed(number, error))?;
        connections.upkeep.spawn(upkeep);
        connections.clients.push(client);
    }
    let mut connecting = stream::iter(0..plan.silent)
        .map(|_| client::connect_silently(address, Arc::clone(plan), Arc::clone(ledger)))
        .buffered(AT_ONCE);
    while let Some(connected) = connecting.next().await {
        let number = plan.connections + connections.silent.len() as u32;
        let silence = connected.map_err(|error| failed(number, error))?;
        connections.silent.spawn(silence);
    }
    Ok(connections)
}

/// One caller: at any time one call, under a timeout.
async fn call_again_and_again<C: Clock>(
    client: Arc<Client>,
    plan: Arc<Plan>,
    ledger: Arc<Ledger>,
    stopping: Arc<AtomicBool>,
) {
    while !stopping.load(Relaxed) {
        let call = client.next_call();
        let ticket = ledger.open(call, plan.timeout);
        match C::timeout(plan.timeout, client.call(call)).await {
            Ok(Ok(())) => ticket.replied(),
            Err(_timed_out) => ticket.timed_out(),
            Ok(Err(_connection_lost)) => return ticket.failed(),
        }
    }
}

/// One line a second: rewritten in place on a terminal, one under the other elsewhere.
#[derive(Default)]
struct Progress {
    shown_at: Duration,
}

impl Progress {
    fn show(&mut self, clock: &str, started: Instant, ledger: &Ledger) {
        let elapsed = started.elapsed();
        // The last second's line and the one at the end are often the same.
        if elapsed - self.shown_at < Duration::from_millis(100) {
            return;
        }
        self.shown_at = elapsed;
        let line = report::progress(clock, elapsed, &ledger.tally());
        let mut out = io::stdout().lock();
        let _ = if out.is_terminal() {
            write!(out, "\r{line}")
        } else {
            writeln!(out, "{line}")
        }
        .and_then(|()| out.flush());
    }

    fn end(self) {
        let mut out = io::stdout().lock();
        if out.is_terminal() {
            let _ = writeln!(out);
        }
    }
}

/// User and system time of this process.
fn cpu_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name, which may contain anything but ends with the last
    // parenthesis.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    // In hundredths of a second on every architecture that Linux is common on.
    Some(Duration::from_millis((user + system) * 10))
}
