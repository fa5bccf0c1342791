//! A clock in the contest: its runtime, which it has to itself, and the load that runs there.

use std::io;
use std::sync::Arc;

use tokio::runtime::{self, Runtime};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::ledger::Ledger;
use crate::load::{self, Outcome};
use crate::plan::Plan;

/// What a contestant is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Keep calls in flight on all connections.
    Calling,
    /// Make no new calls. The connections stay, with their heartbeats.
    Resting,
    /// Close everything.
    Over,
}

pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    pub(crate) ledger: Arc<Ledger>,
    /// All of the load, from the first connection to the last.
    pub(crate) life: JoinHandle<io::Result<Outcome>>,
    phase: watch::Sender<Phase>,
}

impl Contestant {
    /// Opens the connections, which then rest. A runtime is for one contestant.
    pub(crate) async fn open<C: Clock>(
        runtime: &Runtime,
        plan: &Arc<Plan>,
        interrupted: &watch::Receiver<bool>,
    ) -> io::Result<Contestant> {
        let ledger = Arc::new(Ledger::default());
        let (phase, phases) = watch::channel(Phase::Resting);
        let (opened, is_open) = oneshot::channel();
        let life = runtime.spawn(load::run::<C>(
            Arc::clone(plan),
            Arc::clone(&ledger),
            phases,
            interrupted.clone(),
            opened,
        ));
        match is_open.await {
            Ok(()) => Ok(Contestant {
                name: C::NAME,
                ledger,
                life,
                phase,
            }),
            // It ended without being open.
            Err(_) => Err(match life.await? {
                Err(error) => error,
                Ok(_) => io::Error::other("the load ended before it began"),
            }),
        }
    }

    /// `Over` is the last.
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Waits for all that is under way to end, once the phase is `Over`.
    pub(crate) async fn outcome(self) -> io::Result<Outcome> {
        self.life.await?
    }
}

/// A runtime whose threads bear the clock's name, by which their CPU time is told apart.
pub(crate) fn runtime_for<C: Clock>(workers: usize) -> io::Result<Runtime> {
    runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name(C::NAME)
        .enable_all()
        .build()
}
