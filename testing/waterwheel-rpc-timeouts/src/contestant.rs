//! A contestant: one clock with a runtime of its own, and the load that runs there.

use std::io;
use std::sync::Arc;

use tokio::runtime::{self, Runtime};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::ledger::Ledger;
use crate::load::{self, Outcome, Phase};
use crate::plan::Plan;

pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    pub(crate) ledger: Arc<Ledger>,
    /// All of the load, from the first connection to the last.
    pub(crate) life: JoinHandle<io::Result<Outcome>>,
    phase: watch::Sender<Phase>,
}

impl Contestant {
    /// Opens the connections, and makes no calls yet. Each contestant needs its own runtime.
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
            // The load ended before all connections were open.
            Err(_) => Err(match life.await? {
                Err(error) => error,
                Ok(_) => {
                    io::Error::other("the connections were not all opened: the load ended first")
                }
            }),
        }
    }

    /// Starts a phase. No phase may follow `Over`.
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Waits until the load has ended, after the phase `Over` has started.
    pub(crate) async fn outcome(self) -> io::Result<Outcome> {
        self.life.await?
    }
}

/// A runtime whose threads have the clock's name. `cpu` finds them by it.
pub(crate) fn runtime_for<C: Clock>(workers: usize) -> io::Result<Runtime> {
    runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name(C::NAME)
        .enable_all()
        .build()
}
