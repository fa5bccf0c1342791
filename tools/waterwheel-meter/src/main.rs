//! The meter with a demo load: `cargo run -p waterwheel-meter`. The crate's README explains how a program displays its own timer.

#![forbid(unsafe_code)]

mod load;
mod signals;

use std::error::Error;
use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::{Parser, value_parser};
use tokio::runtime::Builder;
use waterwheel::Timer;
use waterwheel_meter::{JobList, Meter};

use signals::Signals;

/// Shows a timer of waterwheel's, a load of timers on it, and the jobs of a scheduler, until `q` is pressed.
#[derive(Debug, PartialEq, Eq, Parser)]
#[command(after_help = "If stdout is no terminal, it does what --once does.")]
struct Flags {
    /// Print a summary of a second as plain text, and end
    #[arg(long)]
    once: bool,
    /// How many requests are under way, each with a timeout of up to a minute
    #[arg(long, value_name = "N", default_value = "50000", value_parser = value_parser!(u64).range(..=10_000_000))]
    timers: u64,
    /// How many jobs that run once wait, each for up to half an hour
    #[arg(long, value_name = "N", default_value = "10000", value_parser = value_parser!(u64).range(..=10_000_000))]
    orders: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let flags = Flags::parse();
    // The I/O driver is needed for the signals.
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let builder = Timer::builder().name("requests");
    // This gives the first dial a thousand slots.
    let timer = builder
        .resolution(Duration::from_millis(1))
        .start_on(runtime.handle())?;
    let scheduler = load::start(&runtime, &timer, flags.timers, flags.orders);
    let meter = Meter::new(&timer).jobs(move |most| JobList::of(&scheduler, most));
    let (ended, signal) = match flags.once || !io::stdout().is_terminal() {
        true => (meter.print_once(), None),
        false => {
            let signals = Signals::listen(&runtime)?;
            let came = signals.clone();
            let ended = meter.quit_if(move || came.came().is_some()).run();
            (ended, signals.came())
        }
    };
    timer.shutdown();
    runtime.shutdown_background();
    if let Some(number) = signal {
        // A terminal that is gone is no error here.
        std::process::exit(signals::code(number));
    }
    Ok(ended?)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::Flags;

    fn parse(line: &str) -> Result<Flags, String> {
        let words = ["waterwheel-meter"]
            .into_iter()
            .chain(line.split_whitespace());
        Flags::try_parse_from(words).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_are_read_and_wrong_ones_are_named() {
        let flags = parse("--once --timers 7 --orders 0").expect("flags");
        assert!(flags.once && flags.timers == 7 && flags.orders == 0);
        let flags = parse("").expect("flags");
        assert!(!flags.once && flags.timers == 50_000 && flags.orders == 10_000);
        assert!(parse("-h").expect_err("help").contains("--timers"));
        for wrong in [
            "--twice",
            "--timers",
            "--timers x",
            "--timers -1",
            "--timers 10000001",
            "--orders",
            "--orders many",
        ] {
            let word = wrong.split(' ').next_back().expect("a word");
            assert!(parse(wrong).expect_err(wrong).contains(word), "{wrong}");
        }
    }
}
