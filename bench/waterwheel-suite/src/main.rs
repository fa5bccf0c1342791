//! Compares waterwheel to its peers, in one run, on one machine, with the same work. The method and the commands: README.md.
//!
//! How a sample is taken:
//!
//! - `flags` select the `workloads` that run, and the number of `rounds`. Only that list knows every `workload`.
//! - `rounds` gives each contestant its turn, in its own `process`, which may be the second build of the suite
//!   (`alt_timer`).
//! - There the workload takes one sample on a `stage` of two workers. The per-operation workloads all have one loop,
//!   `engine`, in which a `crew` repeats an `operation` of a `contestant`.
//! - `targets` gives the verdicts. The library of this package prints them and the tables, and writes both down for the
//!   pages and the charts.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the figures are for standard output")]

mod alt_timer;
mod armed;
mod cargo;
mod conditions;
mod contestant;
mod cpu;
mod crew;
mod crowd;
mod engine;
mod entrant;
mod flags;
mod lateness;
mod lead;
mod operation;
mod patience;
mod process;
mod ring;
mod rounds;
mod stage;
mod targets;
mod workload;
mod workloads;

use std::process::ExitCode;

use clap::Parser as _;
use waterwheel_suite::{Results, Table, report_conditions, report_table, report_targets};

use flags::Flags;
use process::Program;
use rounds::Programs;

fn main() -> ExitCode {
    let is_asked = |argument: String| [flags::BENCH, process::FLAG].contains(&&*argument);
    if !std::env::args().any(is_asked) {
        // A test harness has its own flags, and `cargo test --all-targets` must not take minutes.
        println!("the suite measures under `cargo bench -p waterwheel-suite` only");
        return ExitCode::SUCCESS;
    }
    let flags = Flags::parse();
    let done = match &flags.sample[..] {
        [title, name] => {
            process::sample(workloads::all(flags.quick), title, name).map(|()| ExitCode::SUCCESS)
        }
        _ => report_all(&flags),
    };
    done.unwrap_or_else(|message| {
        eprintln!("suite: {message}");
        ExitCode::from(2)
    })
}

/// Measures the selected workloads and gives the verdicts.
fn report_all(flags: &Flags) -> Result<ExitCode, String> {
    let slips = workloads::slips();
    if !slips.is_empty() {
        let slips = slips.join("; ");
        return Err(format!("targets for what is not measured: {slips}"));
    }
    let workloads = workloads::all(flags.quick).into_iter();
    let titles: Vec<String> = workloads.map(|workload| workload.title).collect();
    let unmatched = flags.unmatched(&titles);
    if !unmatched.is_empty() {
        let titles = titles.join("\n  ");
        return Err(format!(
            "no title begins with {unmatched:?}; this run has\n  {titles}"
        ));
    }
    let results = measure(flags)?;
    print!("{}", report_targets(&results.targets));
    println!("\nAll samples: {}", flags.json().display());

    let faults: u64 = results.tables.iter().map(Table::faults).sum();
    if faults > 0 {
        println!(
            "\n{faults} FAULTS, see above: a timer that fires early or never, or a sample that fails, is a bug and not a figure"
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the workloads one after the other. Each table is printed and written when it is complete, so that an interrupted
/// run keeps the earlier tables.
fn measure(flags: &Flags) -> Result<Results, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let alt_timer = if flags.no_builds {
        Err("--no-builds".to_owned())
    } else {
        alt_timer::build()
    };
    let workloads = workloads::all(flags.quick).into_iter();
    let titles = workloads.map(|workload| workload.title);
    let wanted: Vec<String> = titles.filter(|title| flags.wants(title)).collect();
    workloads::build(&wanted)?;
    let mut results = Results {
        conditions: conditions::read(flags, alt_timer.clone().err()),
        tables: Vec::new(),
        targets: Vec::new(),
    };
    let programs = Programs {
        this: Program::new(this, flags.quick),
        alt_timer: alt_timer.ok().map(|path| Program::new(path, flags.quick)),
    };

    print!("{}", report_conditions(&results.conditions));
    for workload in workloads::all(flags.quick) {
        if !flags.wants(&workload.title) {
            continue;
        }
        let rounds = workloads::rounds(&workload.title, flags.rounds(), flags.quick);
        let table = programs.run(workload, rounds);
        print!("{}", report_table(&table));
        results.tables.push(table);
        results.targets = targets::verdicts(workloads::targets(), &results.tables);
        let json = flags.json();
        let written = results.write(&json);
        written.map_err(|error| format!("{}: {error}", json.display()))?;
    }
    Ok(results)
}
