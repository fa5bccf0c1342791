//! The load on one clock: opens the connections, keeps calls in flight on all of them during this clock's slices, and waits for
//! everything to end.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use waterwheel::Metrics;

use crate::client::{self, Client};
use crate::clock::Clock;
use crate::descriptors::Demand;
use crate::ledger::{Ledger, Tally};
use crate::plan::Plan;
use crate::server;

/// The phases of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Keep calls in flight on all connections.
    Calling,
    /// Make no new calls. The connections stay, with their heartbeats.
    Resting,
    /// Close everything.
    Over,
}

/// How long the load waits for silent connections to close at its end. A busy server closes them late. A server with a lost timer
/// never closes them.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of connections that are opened concurrently. On a busy machine each of them waits for the scheduler more than once.
const AT_ONCE: usize = 64;

/// The result of one clock's run.
pub(crate) struct Outcome {
    pub(crate) clock: &'static str,
    pub(crate) interrupted: bool,
    pub(crate) tally: Tally,
    pub(crate) silent: u32,
    pub(crate) books: Option<Metrics>,
}

/// Sends to `opened` once all connections are open, and follows `phases` to the end.
pub(crate) async fn run<C: Clock>(
    plan: Arc<Plan>,
    ledger: Arc<Ledger>,
    phases: watch::Receiver<Phase>,
    mut interrupted: watch::Receiver<bool>,
    opened: oneshot::Sender<()>,
) -> io::Result<Outcome> {
    let listener = listen(plan.connections.saturating_add(plan.silent))?;
    let address = listener.local_addr()?;
    let closing = CancellationToken::new();
    let mut server = tokio::spawn(server::serve::<C>(
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
            // If the server failed first, its error is the cause.
            server.await??;
            return Err(error);
        }
    };
    let _ = opened.send(());

    take_turns::<C>(&clients, &plan, &ledger, phases, &mut server).await?;

    // All callers have ended, so this drops the clients. Each closes its connection, and then the server closes its end.
    drop(clients);
    while let Some(connection) = upkeep.join_next().await {
        connection?;
    }
    let was_interrupted = tokio::select! {
        biased;
        Ok(_) = interrupted.wait_for(|&interrupted| interrupted) => true,
        // Connections that are still open after this time fail the self-check.
        _ = tokio::time::timeout(PATIENCE, async {
            while silent.join_next().await.is_some() {}
        }) => false,
    };
    silent.shutdown().await;
    closing.cancel();
    server.await??;

    Ok(Outcome {
        clock: C::NAME,
        interrupted: was_interrupted,
        tally: ledger.tally(),
        silent: plan.silent,
        books: C::books(),
    })
}

/// Listens with room for all connections in the accept queue. With less, the kernel drops what a busy server has not accepted, and
/// the client tries again after a second: as long as the idle deadline.
fn listen(connections: u32) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    socket.listen(connections)
}

struct Connections {
    clients: Vec<Arc<Client>>,
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
    let failed = |number: u32, error| {
        let all = plan.connections + plan.silent;
        not_set_up(
            &format!("connection {} of {all} failed", number + 1),
            plan,
            error,
        )
    };
    let mut connecting = stream::iter(0..plan.connections)
        .map(|number| Client::connect::<C>(address, number, Arc::clone(plan), Arc::clone(ledger)))
        .buffered(AT_ONCE);
    while let Some(connected) = connecting.next().await {
        let number = connections.clients.len() as u32;
        let (client, upkeep) = connected.map_err(|error| failed(number, error))?;
        connections.upkeep.spawn(upkeep);
        connections.clients.push(Arc::new(client));
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

/// An error that says what failed, with the remedy if there is one.
pub(crate) fn not_set_up(what: &str, plan: &Plan, error: io::Error) -> io::Error {
    let error = Demand::of(plan).explain(error);
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Makes calls while the phase is `Calling`. Returns when it is `Over` and all calls have ended, or with an error if the server
/// ends first.
async fn take_turns<C: Clock>(
    clients: &[Arc<Client>],
    plan: &Arc<Plan>,
    ledger: &Arc<Ledger>,
    mut phases: watch::Receiver<Phase>,
    server: &mut JoinHandle<io::Result<()>>,
) -> io::Result<()> {
    let mut callers = JoinSet::new();
    // The flag of the callers that have not been stopped.
    let mut stopping: Option<Arc<AtomicBool>> = None;
    loop {
        let phase = *phases.borrow_and_update();
        if phase != Phase::Calling {
            if let Some(stopping) = stopping.take() {
                stopping.store(true, Relaxed);
            }
        } else if stopping.is_none() {
            let stopping = &*stopping.insert(Arc::default());
            for client in clients {
                for _ in 0..plan.concurrency {
                    callers.spawn(call_again_and_again::<C>(
                        Arc::clone(client),
                        Arc::clone(plan),
                        Arc::clone(ledger),
                        Arc::clone(stopping),
                    ));
                }
            }
        }
        if phase == Phase::Over && callers.is_empty() {
            return Ok(());
        }
        tokio::select! {
            changed = phases.changed(), if phase != Phase::Over => {
                changed.map_err(|_| {
                    io::Error::other("the main thread ended before the load: please report this bug")
                })?;
            }
            Some(caller) = callers.join_next() => caller?,
            ended = &mut *server => {
                ended??;
                return Err(io::Error::other("the server ended before its clients"));
            }
        }
    }
}

/// One caller: makes one call after another, each under a timeout.
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
            Some(Some(())) => ticket.replied(),
            None => ticket.timed_out(),
            // The connection was lost.
            Some(None) => return ticket.failed(),
        }
    }
}
