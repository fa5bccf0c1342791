//! waterwheel against `tokio::time`, in one run, on one machine, with the same work.
//!
//! ```text
//! cargo bench --bench versus_tokio -- [--quick] [--rounds N] [filter...]
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
mod cancel;
mod contestant;
mod cpu;
mod crew;
mod fire;
mod flags;
mod floor;
mod herd;
mod lead;
mod random;
mod report;
mod rounds;
mod stage;
mod targets;

use std::process::ExitCode;
use std::time::Duration;

use flags::{Flags, Wish};
use report::Table;

fn main() -> ExitCode {
    let flags = match Flags::parse(std::env::args().skip(1)) {
        Ok(Wish::Measure(flags)) => flags,
        Ok(Wish::Nothing) => {
            println!("versus_tokio measures under `cargo bench --bench versus_tokio` only");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("versus_tokio: {message}");
            return ExitCode::from(2);
        }
    };

    report::print_conditions(&flags);
    let tables = measure(&flags);
    if tables.is_empty() {
        eprintln!(
            "versus_tokio: no workload has {:?} in its title",
            flags.filters
        );
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
    let mut keep = |title: String, run: &dyn Fn(String) -> Table| {
        if flags.wants(&title) {
            let table = run(title);
            table.print();
            tables.push(table);
        }
    };

    let operations = if flags.quick { 100_000 } else { 400_000 };
    for threads in [1, 2] {
        for others in [0, 100_000] {
            let load = cancel::Load {
                threads,
                others,
                operations,
            };
            keep(load.title(), &|title| {
                cancel::run(title, load, flags.rounds)
            });
        }
    }

    let herds: &[usize] = if flags.quick {
        &[100_000]
    } else {
        &[100_000, 1_000_000]
    };
    for &tasks in herds {
        keep(herd::title(tasks), &|title| {
            herd::run(title, tasks, flags.rounds)
        });
    }

    // The quick run has the same timers a second as the smaller full one, over a quarter of the time.
    let fires: &[(usize, u64)] = if flags.quick {
        &[(25_000, 250)]
    } else {
        &[(100_000, 1000), (1_000_000, 1000)]
    };
    for &(timers, millis) in fires {
        let load = fire::Load {
            timers,
            window: Duration::from_millis(millis),
        };
        keep(load.title(), &|title| fire::run(title, load, flags.rounds));
    }
    tables
}
