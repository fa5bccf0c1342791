//! waterwheel against `tokio::time`, in one run, on one machine, with the same work.
//!
//! ```text
//! cargo bench -p waterwheel-suite -- [--quick] [--rounds N] [filter...]
//! ```
//!
//! A filter is a part of a workload's title (`cancel`, `herd`, `fire`, `cancel, 2 threads`); several are joined by "or".
//!
//! # Method
//! Each sample runs in a fresh multi-thread runtime of two workers, on tasks spawned on those workers, with a `yield_now`
//! every 128 operations. The contestants take turns (A B C A B C …), so that the drift of a shared machine hits them
//! all. A figure is the median of the rounds, with the least and the greatest. The result is the ratio: in each round tokio's
//! figure over the contestant's, and of these ratios the median. More than 1 is better than tokio, less is a loss, and
//! a loss is printed like a win.
//!
//! Time never gates: a missed target leaves the exit code at 0. A timer that fires early or never is a fault of
//! correctness, and makes it 1.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the figures are for standard output")]

mod armed;
mod contestant;
mod cpu;
mod crew;
mod flags;
mod floor;
mod lead;
mod random;
mod report;
mod rounds;
mod stage;
mod targets;
mod workloads;

use std::process::ExitCode;

use flags::{Flags, Wish};
use report::Table;

fn main() -> ExitCode {
    let flags = match Flags::parse(std::env::args().skip(1)) {
        Ok(Wish::Measure(flags)) => flags,
        Ok(Wish::Nothing) => {
            println!("the suite measures under `cargo bench -p waterwheel-suite` only");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("suite: {message}");
            return ExitCode::from(2);
        }
    };

    report::print_conditions(&flags);
    let tables = measure(&flags);
    if tables.is_empty() {
        eprintln!("suite: no workload has {:?} in its title", flags.filters);
        return ExitCode::from(2);
    }
    targets::print(&tables);

    let faults: u64 = tables.iter().map(Table::faults).sum();
    if faults > 0 {
        println!("\n{faults} timers fired early or never: this is a bug, not a figure");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Runs what the flags ask for, in this order, and prints each table as soon as it is there.
fn measure(flags: &Flags) -> Vec<Table> {
    let mut tables = Vec::new();
    for workload in workloads::all(flags.quick) {
        if flags.wants(&workload.title) {
            let table = workload.run(flags.rounds);
            table.print();
            tables.push(table);
        }
    }
    tables
}
