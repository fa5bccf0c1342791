//! The cost of durable timers, compared with the disk that they are synced to and a thread that only sleeps.
//!
//! ```text
//! cargo run --release -p waterwheel-durable-bench                    # all of it: writes the page, the results and the charts
//! cargo run --release -p waterwheel-durable-bench -- --quick         # is it plausible? Two minutes
//! cargo run --release -p waterwheel-durable-bench -- --only steady   # some rows
//! cargo run --release -p waterwheel-durable-bench -- --postgres      # PostgreSQL beside SQLite: prints the table
//! cargo run --release -p waterwheel-durable-bench -- --pages         # writes the page and the charts of the results that are there
//! ```
//!
//! | file | question |
//! |---|---|
//! | `rows/` | what is measured in a round? |
//! | `run`, `round` | how often, in which order, in which process? |
//! | `place`, `postgres`, `callers`, `lateness`, `seen`, `store` | how is it measured? |
//! | `policies` | what does it cost to have policies? |
//! | `disk`, `control` | what does the machine do without us? |
//! | `targets/` | what is wanted, and is it reached? |
//! | `pages`, `blocks`, `charts`, `results` | where does it go? |
//!
//! The root's `bench/waterwheel-bench-kit` draws, fills pages, and starts the child processes.
#![expect(clippy::print_stdout, reason = "it prints what it measures")]

mod blocks;
mod callers;
mod charts;
mod conditions;
mod control;
mod disk;
mod flags;
mod lateness;
mod pages;
mod place;
mod policies;
mod postgres;
mod process;
mod results;
mod round;
mod rows;
mod run;
mod sample;
mod seen;
mod store;
mod targets;

use std::process::ExitCode;

use clap::Parser as _;
use flags::Flags;
use place::{Failure, Place, WORKERS};
use results::Results;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let done = match &flags.sample {
        Some(row) => sample(&flags, row),
        None => measure(&flags),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Plays a round, in a child process: its figures are the only line of its output.
fn sample(flags: &Flags, name: &str) -> Result<(), Failure> {
    let row = rows::ALL.iter().find(|row| row.name == name);
    let row = row.ok_or_else(|| format!("there is no row {name}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()?;
    let place = Place {
        folder: flags.folder(),
        quick: flags.quick,
        pending: flags.pending(),
        url: flags.url.clone(),
    };
    let sample = runtime.block_on(row.play(place))?;
    println!("{}", serde_json::to_string(&sample)?);
    Ok(())
}

fn measure(flags: &Flags) -> Result<(), Failure> {
    if flags.pages {
        return pages::write(&Results::read(&pages::results())?);
    }
    if let Some(unknown) = flags
        .only
        .iter()
        .find(|only| rows::ALL.iter().all(|row| row.name != **only))
    {
        let names: Vec<&str> = rows::ALL.iter().map(|row| row.name).collect();
        return Err(format!("{unknown}: not one of {}", names.join(", ")).into());
    }
    let results = run::run(flags)?;
    let (conditions, of_files) = blocks::ALL.split_first().expect("there are blocks");
    println!("{}\n", conditions.1(&results));
    match flags.postgres {
        true => println!("{}\n", blocks::postgres(&results)),
        false => of_files
            .iter()
            .for_each(|(_, make)| println!("{}\n", make(&results))),
    }
    println!("It took {:.0} s.", results.seconds);
    if flags.is_whole() {
        results.write(&pages::results())?;
        pages::write(&results)?;
    }
    let faults = results.faults();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(faults.join("\n").into()),
    }
}
