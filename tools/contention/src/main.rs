//! Five seconds that show what the timers of `tokio::time` cost where many workers arm them, beside those of waterwheel.
//!
//! ```text
//! cargo run --release -p waterwheel-contention
//! cargo run --release -p waterwheel-contention -- --markdown    # a table to paste into an issue
//! ```
//!
//! Both libraries take turns, pair by pair, each time in a new runtime. A ratio is the median of the pairs, with the lowest and
//! the highest. Beside that, every timer is checked: none may fire before its deadline or be lost.
//!
//! Exit code: 0 if every timer kept its promise, 1 if one did not or if it could not be measured, 2 for flags that make no sense.

#![forbid(unsafe_code)]

mod measure;
mod report;
mod spread;
mod timers;

use std::alloc::System;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use cap::Cap;
use clap::{Arg, ArgAction, Command, value_parser};

use crate::measure::{Beats, Measured};
use crate::report::{Line, Report, Unit};
use crate::timers::{Timers, Tokio, Waterwheel};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The bytes of heap that are in use.
fn allocated() -> usize {
    ALLOCATOR.allocated()
}

struct Flags {
    workers: usize,
    tasks: usize,
    pairs: u32,
    markdown: bool,
}

impl Flags {
    /// Ends the process for `--help` and for flags that make no sense.
    fn parse() -> Flags {
        let matches = Flags::command().get_matches();
        let whole = |name: &str| matches.get_one::<u32>(name).copied();
        Flags {
            workers: whole("workers").map_or_else(measure::cores, |count| count as usize),
            tasks: whole("tasks").map_or(0, |count| count as usize),
            pairs: whole("pairs").unwrap_or(1),
            markdown: matches.get_flag("markdown"),
        }
    }

    fn command() -> Command {
        let number = |name: &'static str, most: i64, help: &'static str| {
            Arg::new(name)
                .long(name)
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..=most))
                .help(help)
        };
        Command::new("waterwheel-contention")
            .about("Measures tokio::time and waterwheel in turn, and checks every timer")
            .after_help(
                "Exit codes: 0 if every timer kept its promise, 1 if one did not or could not be measured, \
                 2 if the arguments are invalid.",
            )
            .arg(number(
                "workers",
                1_024,
                "Workers of each runtime [default: one for each core]",
            ))
            .arg(number("tasks", 4_000_000, "Tasks that wake at once").default_value("200000"))
            .arg(number("pairs", 99, "How often each library is measured, in turn").default_value("3"))
            .arg(
                Arg::new("markdown")
                    .long("markdown")
                    .action(ArgAction::SetTrue)
                    .help("Print a Markdown table, to paste into an issue"),
            )
    }
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    match run(&flags) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("waterwheel-contention: {error}");
            ExitCode::FAILURE
        }
    }
}

/// True if every timer kept its promise.
fn run(flags: &Flags) -> io::Result<bool> {
    let mut report = Report::new(flags.workers);
    if !flags.markdown {
        print(&report.head());
    }

    let window = Duration::from_millis(100);
    let mut cancel = Line::new(
        "arm and cancel on every worker, with others pending",
        Unit::Nanoseconds,
    );
    in_turn(
        flags.pairs,
        &mut cancel,
        &mut report.failures,
        || measure::arm_and_cancel::<Tokio>(flags.workers, window),
        || measure::arm_and_cancel::<Waterwheel>(flags.workers, window),
    )?;

    let label = format!(
        "{} tasks wake at once: longest stall of another task",
        report::grouped(flags.tasks)
    );
    let mut herd = Line::new(label, Unit::Milliseconds);
    let mut beats = [Beats::default(), Beats::default()];
    let [tokio, waterwheel] = &mut beats;
    in_turn(
        flags.pairs,
        &mut herd,
        &mut report.failures,
        || stall::<Tokio>(flags, tokio),
        || stall::<Waterwheel>(flags, waterwheel),
    )?;

    let mut late = Line::new(
        "1000 timers per second: median lateness",
        Unit::Milliseconds,
    );
    in_turn(
        flags.pairs,
        &mut late,
        &mut report.failures,
        || measure::lateness::<Tokio>(flags.workers, 150),
        || measure::lateness::<Waterwheel>(flags.workers, 150),
    )?;

    let mut heap = Line::new("memory of a pending boxed sleep", Unit::Bytes);
    in_turn(
        1,
        &mut heap,
        &mut report.failures,
        || measure::heap::<Tokio>(100_000),
        || measure::heap::<Waterwheel>(100_000),
    )?;

    report.lines = vec![cancel, herd, late, heap];
    report.beats = beats;
    print(&if flags.markdown {
        report.markdown()
    } else {
        report.text()
    });
    Ok(report.failures.is_empty())
}

/// The longest stall of the heartbeat. What it did in the last round is kept for the picture.
fn stall<T: Timers>(flags: &Flags, kept: &mut Beats) -> io::Result<Measured<f64>> {
    let Some(measured) = measure::herd::<T>(flags.workers, flags.tasks)? else {
        return Err(io::Error::other(format!(
            "the machine is too busy to arm {} timers before they are due; try fewer --tasks",
            report::grouped(flags.tasks)
        )));
    };
    *kept = measured.figure;
    Ok(Measured {
        figure: kept
            .longest_gap
            .map_or(f64::NAN, |gap| gap.as_secs_f64() * 1e3),
        failures: measured.failures,
    })
}

/// Measures both libraries this many times. Which one is first changes from pair to pair.
fn in_turn(
    pairs: u32,
    line: &mut Line,
    failures: &mut Vec<String>,
    mut tokio: impl FnMut() -> io::Result<Measured<f64>>,
    mut waterwheel: impl FnMut() -> io::Result<Measured<f64>>,
) -> io::Result<()> {
    let mut keep = |name: &str, measured: Measured<f64>| {
        let named = measured
            .failures
            .into_iter()
            .map(|why| format!("{name}, {}: {why}", line.label));
        failures.extend(named);
        measured.figure
    };
    for pair in 0..pairs {
        let (tokio, waterwheel) = if pair % 2 == 0 {
            let first = tokio()?;
            (first, waterwheel()?)
        } else {
            let first = waterwheel()?;
            (tokio()?, first)
        };
        let pair = (keep(Tokio::NAME, tokio), keep(Waterwheel::NAME, waterwheel));
        line.pairs.push(pair);
    }
    Ok(())
}

/// A closed pipe (`… | head`) is no reason to panic.
fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use super::*;
    use crate::timers::Instant;

    #[test]
    fn the_command_is_well_formed_and_refuses_zero() {
        Flags::command().debug_assert();
        let refused = Flags::command().try_get_matches_from(["contention", "--tasks", "0"]);
        assert!(refused.is_err());
    }

    /// Timers that keep no promise.
    struct Broken<const LOST: bool>;

    impl<const LOST: bool> Timers for Broken<LOST> {
        const NAME: &'static str = "broken";
        type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

        fn sleep(duration: Duration) -> Self::Sleep {
            Self::sleep_until(Instant::now() + duration)
        }

        fn sleep_until(deadline: Instant) -> Self::Sleep {
            if LOST {
                return Box::pin(std::future::pending());
            }
            let early = deadline - Duration::from_millis(60);
            Box::pin(tokio::time::sleep_until(early))
        }

        fn complaint() -> Option<String> {
            None
        }
    }

    fn failures<F>(measured: io::Result<Measured<F>>) -> String {
        measured.unwrap().failures.join("; ")
    }

    #[test]
    fn timers_that_fire_early_are_found() {
        let early = "timers fired before their deadline";
        assert!(failures(measure::lateness::<Broken<false>>(2, 50)).contains(early));
        let herd = measure::herd::<Broken<false>>(2, 1_000).map(Option::unwrap);
        assert!(failures(herd).contains(early));
    }

    #[test]
    fn timers_that_are_lost_are_found_and_have_no_figure() {
        assert!(failures(measure::lateness::<Broken<true>>(2, 50)).contains("never fired"));
        let herd = measure::herd::<Broken<true>>(2, 1_000).map(Option::unwrap);
        assert!(herd.as_ref().unwrap().figure.longest_gap.is_none());
        assert!(failures(herd).contains("1000 of 1000 timers never fired"));
    }

    /// With sizes that a busy machine bears, the whole of it runs, and all timers keep their promises.
    #[test]
    fn a_small_run_holds() {
        for markdown in [false, true] {
            let flags = Flags {
                workers: 2,
                tasks: 1_000,
                pairs: 2,
                markdown,
            };
            assert!(run(&flags).unwrap());
        }
    }
}
