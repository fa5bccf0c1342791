//! The meter beside a demo load: `cargo run -p waterwheel-meter`. The crate's README says how a program looks at a timer of its own.

#![forbid(unsafe_code)]

mod load;
mod signals;

use std::env;
use std::error::Error;
use std::io::{self, IsTerminal};
use std::time::Duration;

use tokio::runtime::Builder;
use waterwheel::Timer;
use waterwheel_meter::{JobList, Meter};

use signals::Signals;

const HELP: &str = "\
Usage: waterwheel-meter [--once] [--timers N] [--orders N]

Shows a timer of waterwheel's, a load of timers on it, and the jobs of a scheduler, until `q` is pressed.

  --once      print a summary of a second as plain text, and end
  --timers N  how many requests are under way, each with a timeout of up to a minute (50000)
  --orders N  how many jobs that run once wait, each for up to half an hour (10000)
  --help      print this

If stdout is no terminal, it does what --once does.
";

fn main() -> Result<(), Box<dyn Error>> {
    let flags = match Flags::parse(env::args().skip(1)) {
        Ok(flags) => flags,
        Err(wrong) => {
            eprint!("waterwheel-meter: {wrong}\n\n{HELP}");
            std::process::exit(2);
        }
    };
    if flags.help {
        print!("{HELP}");
        return Ok(());
    }
    // The I/O driver is for the signals.
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let builder = Timer::builder().name("requests");
    // The first dial then has a thousand slots.
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
        // If its terminal has gone, that is no error.
        std::process::exit(signals::code(number));
    }
    Ok(ended?)
}

#[derive(Debug, PartialEq, Eq)]
struct Flags {
    once: bool,
    timers: u64,
    orders: u64,
    help: bool,
}

impl Flags {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Flags, String> {
        let mut flags = Flags {
            once: false,
            timers: 50_000,
            orders: 10_000,
            help: false,
        };
        while let Some(argument) = arguments.next() {
            match &*argument {
                "--once" => flags.once = true,
                "--help" | "-h" => flags.help = true,
                "--timers" => flags.timers = number(&argument, arguments.next())?,
                "--orders" => flags.orders = number(&argument, arguments.next())?,
                _ => return Err(format!("no such flag: {argument}")),
            }
        }
        Ok(flags)
    }
}

fn number(flag: &str, value: Option<String>) -> Result<u64, String> {
    let value = value.ok_or(format!("{flag} needs a number"))?;
    let parsed = value.parse().ok().filter(|it| *it <= 10_000_000);
    parsed.ok_or(format!("not a number up to 10000000: {value}"))
}

#[cfg(test)]
mod tests {
    use super::Flags;

    fn parse(line: &str) -> Result<Flags, String> {
        Flags::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_are_read_and_wrong_ones_are_named() {
        let flags = parse("--once --timers 7 --orders 0").expect("flags");
        assert!(flags.once && flags.timers == 7 && flags.orders == 0 && !flags.help);
        assert!(parse("-h").expect("flags").help);
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
