//! An RPC server and its client under load: once with waterwheel's timers, once with tokio's.
//!
//! ```text
//! cargo run --release --example rpc_timeouts
//! cargo run --release --example rpc_timeouts -- --connections 500 --timeout-ms 100 --seconds 20
//! ```
//!
//! Both ends live in this process and talk over loopback TCP. Thousands of calls are in flight at
//! any time. Each is under a `timeout`; the server answers after a random delay, sometimes too
//! late, sometimes never; every connection has an idle deadline that each frame pushes back, and a
//! heartbeat that keeps it alive when there is nothing to say. At the end: what the timers cost,
//! how late they were, and whether every call ended exactly once and none early.
//!
//! | file | concept |
//! |---|---|
//! | `flags` | the command line |
//! | `plan` | what both clocks are put through: sizes, deadlines, the fate of each call |
//! | `clock` | the timers under test, behind one trait: **how waterwheel is used** |
//! | `wire` | frames, and the codec that puts them on a socket |
//! | `server`, `client` | the two ends of a connection |
//! | `load` | one clock's turn: connections, callers, progress, an orderly end |
//! | `ledger` | the books, in fixed memory however long the run |
//! | `check` | the self-check on the books |
//! | `report` | what a person reads |
//!
//! `../common` has the command line, chance and histograms, which it shares with `soak`.
//!
//! Exit code: 0 if the self-check holds, also after Ctrl-C; 1 if it fails, or if the load cannot be
//! set up; 2 for flags that make no sense.

#![forbid(unsafe_code)]

mod check;
mod client;
mod clock;
#[path = "../common/mod.rs"]
mod common;
mod flags;
mod ledger;
mod load;
mod plan;
mod report;
mod server;
mod wire;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use tokio::runtime;
use tokio::sync::watch;

use crate::clock::{Clock, Tokio, Waterwheel};
use crate::common::command_line;
use crate::common::text::print;
use crate::flags::{Flags, Side};
use crate::load::Outcome;
use crate::plan::Plan;

fn main() -> ExitCode {
    command_line::main(run)
}

/// Gives each clock its turn and prints the report. True if the self-check holds.
fn run(flags: &Flags) -> io::Result<bool> {
    let plan = Arc::new(Plan::new(flags));
    let workers = thread::available_parallelism().map_or(2, usize::from);
    let interrupted = watch_for_interrupt()?;

    print(&report::method(&plan, workers));
    let waterwheel = turn::<Waterwheel>(flags, Side::Waterwheel, workers, &plan, &interrupted)?;
    let tokio = turn::<Tokio>(flags, Side::Tokio, workers, &plan, &interrupted)?;

    let run: Vec<&Outcome> = waterwheel.iter().chain(&tokio).collect();
    let failures = check::failures(&run);
    print(&report::table(waterwheel.as_ref(), tokio.as_ref()));
    print(&report::notes(waterwheel.as_ref()));
    print(&report::verdict(&failures, *interrupted.borrow()));
    Ok(failures.is_empty())
}

/// One clock's turn, in a runtime of its own so that nothing of it lives on into the other's.
/// `None` if the flags leave it out, or if Ctrl-C came before it began.
fn turn<C: Clock>(
    flags: &Flags,
    side: Side,
    workers: usize,
    plan: &Arc<Plan>,
    interrupted: &watch::Receiver<bool>,
) -> io::Result<Option<Outcome>> {
    if !flags.runs(side) || *interrupted.borrow() {
        return Ok(None);
    }
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()?;
    runtime
        .block_on(load::run::<C>(Arc::clone(plan), interrupted.clone()))
        .map(Some)
}

/// Turns Ctrl-C into a flag that both runtimes can wait for. It has a thread of its own because it
/// outlives them: once tokio has taken the signal over, one that arrives between two runtimes would
/// be lost. A second Ctrl-C ends the process at once.
fn watch_for_interrupt() -> io::Result<watch::Receiver<bool>> {
    let (interrupt, interrupted) = watch::channel(false);
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    thread::Builder::new()
        .name("interrupt".into())
        .spawn(move || {
            runtime.block_on(async {
                if tokio::signal::ctrl_c().await.is_err() {
                    return;
                }
                interrupt.send_replace(true);
                if tokio::signal::ctrl_c().await.is_ok() {
                    std::process::exit(130);
                }
            });
        })?;
    Ok(interrupted)
}
