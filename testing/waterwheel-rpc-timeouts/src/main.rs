//! An RPC server and its client under load, with waterwheel's timers and with tokio's in turn.
//!
//! ```text
//! cargo run --release -p waterwheel-rpc-timeouts
//! cargo run --release -p waterwheel-rpc-timeouts -- --connections 500 --timeout-ms 100 --seconds 20
//! ```
//!
//! Both ends run in this process and talk over loopback TCP. Thousands of calls are in flight at any time, each under a
//! `timeout`. The server answers after a random delay, sometimes too late, sometimes never. Every connection has an idle
//! deadline, which each frame postpones, and a heartbeat, which keeps an unused connection open. At the end it prints
//! the cost and the lateness of the timers, as ratios with their spread. A self-check says whether every call ended exactly once
//! and no timeout was early.
//!
//! Each clock has its own runtime, server and connections, which stay open for the whole run. The clocks take turns under load,
//! slice by slice, so that noise of the machine hits both.
//!
//! | file | concept |
//! |---|---|
//! | `flags` | the command line |
//! | `descriptors` | how many file descriptors the load takes, and the remedy if that is too many |
//! | `plan` | the load that both clocks get: sizes, deadlines, the fate of each call |
//! | `clock` | the timers under test, behind one trait: **how waterwheel is used** |
//! | `wire` | frames, and the codec that puts them on a socket |
//! | `server`, `client` | the two ends of a connection |
//! | `slices` | how the run is cut into slices |
//! | `turns`, `window` | which clock is under load in which slice, and the measurement |
//! | `contestant`, `load` | a clock with its runtime; the load that runs there, from the first connection to an orderly end |
//! | `ledger`, `cpu` | the counts of calls and timers, in fixed memory; the CPU time of a clock's threads |
//! | `ratio` | the ratios of pairs of slices: median, least and greatest |
//! | `check` | the self-check of the counts |
//! | `report`, `table`, `conclusion` | the printed text |
//!
//! Random numbers, histograms and text are those of `bench/waterwheel-bench-kit`.
//!
//! Exit code: 0 if the self-check holds, also after Ctrl-C; 1 if it fails, or if the load cannot be
//! set up; 2 for flags that make no sense.

#![forbid(unsafe_code)]

mod check;
mod client;
mod clock;
mod conclusion;
mod contestant;
mod cpu;
mod descriptors;
mod flags;
mod ledger;
mod load;
mod plan;
mod ratio;
mod report;
mod server;
mod slices;
mod table;
mod turns;
mod window;
mod wire;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use clap::Parser as _;
use tokio::runtime::{self, Runtime};
use tokio::sync::watch;
use waterwheel_bench_kit::exit_code;
use waterwheel_bench_kit::text::print;

use crate::clock::{Clock, Tokio, Waterwheel};
use crate::contestant::Contestant;
use crate::descriptors::Demand;
use crate::flags::{Flags, Side};
use crate::load::Outcome;
use crate::plan::Plan;
use crate::window::Course;

fn main() -> ExitCode {
    exit_code("waterwheel-rpc-timeouts", run(&Flags::parse()))
}

/// Runs the clocks in turn and prints the report. True if the self-check holds.
fn run(flags: &Flags) -> io::Result<bool> {
    let plan = Arc::new(Plan::new(flags));
    Demand::of(&plan).check(descriptors::limit())?;
    let workers = thread::available_parallelism().map_or(2, usize::from);
    let interrupted = watch_for_interrupt()?;

    let clocks = [
        (Side::Waterwheel, Waterwheel::NAME),
        (Side::Tokio, Tokio::NAME),
    ];
    let clocks = clocks.into_iter().filter(|&(side, _)| flags.runs(side));
    let names: Vec<&str> = clocks.map(|(_, name)| name).collect();
    print(&report::method(&plan, &names, workers));
    let (course, outcomes) = contest(flags, workers, &plan, &interrupted)?;

    let failures = check::failures(&outcomes);
    print(&table::table(&outcomes, &course));
    print(&report::notes(&plan, &outcomes, &course));
    print(&report::verdict(&failures, *interrupted.borrow()));
    if let Some(sentence) = conclusion::conclusion(&course, report::lost(&outcomes)) {
        print(&sentence);
    }
    Ok(failures.is_empty())
}

/// Directs the contest from the main thread, in a runtime that belongs to no clock.
fn contest(
    flags: &Flags,
    workers: usize,
    plan: &Arc<Plan>,
    interrupted: &watch::Receiver<bool>,
) -> io::Result<(Course, Vec<Outcome>)> {
    let runtime = |side, build: fn(usize) -> io::Result<Runtime>| {
        flags.runs(side).then(|| build(workers)).transpose()
    };
    let waterwheel = runtime(Side::Waterwheel, contestant::runtime_for::<Waterwheel>)?;
    let tokio = runtime(Side::Tokio, contestant::runtime_for::<Tokio>)?;
    let referee = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    referee.block_on(async {
        let mut contestants = Vec::new();
        if let Some(runtime) = &waterwheel {
            contestants.push(Contestant::open::<Waterwheel>(runtime, plan, interrupted).await?);
        }
        if let Some(runtime) = &tokio {
            contestants.push(Contestant::open::<Tokio>(runtime, plan, interrupted).await?);
        }
        let course = turns::take(&mut contestants, &plan.slices, interrupted).await?;
        let mut outcomes = Vec::new();
        for contestant in contestants {
            outcomes.push(contestant.outcome().await?);
        }
        Ok((course, outcomes))
    })
}

/// Turns Ctrl-C into a flag that all runtimes can wait for. A second Ctrl-C ends the process at once: it is handled on a thread
/// of its own, which no other runtime can block.
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
