//! Shows in five seconds the cost of the timers of `tokio::time` when many workers arm them, compared to those of waterwheel.
//!
//! ```text
//! cargo run --release -p waterwheel-contention
//! cargo run --release -p waterwheel-contention -- --markdown    # a table to paste into an issue
//! ```
//!
//! Both libraries alternate, pair by pair, each time in a new runtime. A ratio is the median of the pairs, with the lowest and
//! the highest. In addition, every timer is checked: none may fire before its deadline or be lost.
//!
//! Exit code: 0 if every timer kept its promise, 1 if one did not or if it could not be measured, 2 for invalid flags.

#![forbid(unsafe_code)]

mod heap;
mod measure;
mod report;
mod timers;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, value_parser};
use waterwheel_bench_kit::text::{grouped, print};
use waterwheel_bench_kit::{exit_code, machine::cores};

use crate::measure::{Beats, Measured};
use crate::report::Report;
use crate::timers::{Timers, Tokio, Waterwheel};

/// Measures the timers of tokio and of waterwheel in turn, and checks every timer
#[derive(Parser)]
#[command(
    after_help = "Exit codes: 0 if every timer kept its promise, 1 if one did not or could not be measured, \
    2 if the arguments are invalid."
)]
struct Flags {
    /// Workers of each runtime [default: one for each core]
    #[arg(long, value_name = "N", default_value_t = cores().min(1_024) as u64, hide_default_value = true)]
    #[arg(value_parser = value_parser!(u64).range(1..=1_024))]
    workers: u64,
    /// Tasks that wake at once
    #[arg(long, value_name = "N", default_value = "200000", value_parser = value_parser!(u64).range(1..=4_000_000))]
    tasks: u64,
    /// How often each library is measured, in turn
    #[arg(long, value_name = "N", default_value = "3", value_parser = value_parser!(u32).range(1..=99))]
    pairs: u32,
    /// Print a Markdown table, to paste into an issue
    #[arg(long)]
    markdown: bool,
}

fn main() -> ExitCode {
    exit_code("waterwheel-contention", run(&Flags::parse()))
}

/// Returns true if every timer kept its promise.
fn run(flags: &Flags) -> io::Result<bool> {
    let mut report = Report::new(flags.workers as usize);
    if !flags.markdown {
        print(&report.head());
    }

    let workers = flags.workers as usize;
    let window = Duration::from_millis(100);
    report.measure(
        "arm and cancel on every worker, with others pending",
        "ns",
        flags.pairs,
        || measure::arm_and_cancel::<Tokio>(workers, window),
        || measure::arm_and_cancel::<Waterwheel>(workers, window),
    )?;
    let mut beats = [Beats::default(), Beats::default()];
    let [tokio, waterwheel] = &mut beats;
    report.measure(
        format!(
            "{} tasks wake at once: longest stall of another task",
            grouped(flags.tasks)
        ),
        "ms",
        flags.pairs,
        || stall::<Tokio>(flags, tokio),
        || stall::<Waterwheel>(flags, waterwheel),
    )?;
    report.measure(
        "1000 timers per second: median lateness",
        "ms",
        flags.pairs,
        || measure::lateness::<Tokio>(workers, 150),
        || measure::lateness::<Waterwheel>(workers, 150),
    )?;
    report.measure(
        "memory of a pending boxed sleep",
        "bytes",
        1,
        || measure::heap::<Tokio>(100_000),
        || measure::heap::<Waterwheel>(100_000),
    )?;
    report.beats = beats;
    print(&if flags.markdown {
        report.markdown()
    } else {
        report.text()
    });
    Ok(report.failures.is_empty())
}

/// The longest stall of the heartbeat. The beats of the last round are kept for the picture.
fn stall<T: Timers>(flags: &Flags, kept: &mut Beats) -> io::Result<Measured<f64>> {
    let Some(measured) = measure::herd::<T>(flags.workers as usize, flags.tasks as usize)? else {
        return Err(io::Error::other(format!(
            "the machine is too busy to arm {} timers before they are due; try fewer --tasks",
            grouped(flags.tasks)
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

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use clap::CommandFactory as _;

    use super::*;
    use crate::timers::Instant;

    #[test]
    fn the_command_is_well_formed_and_refuses_zero() {
        Flags::command().debug_assert();
        let refused = Flags::try_parse_from(["contention", "--tasks", "0"]);
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

    /// Runs the whole program with sizes that suit a busy machine: all timers keep their promises.
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
