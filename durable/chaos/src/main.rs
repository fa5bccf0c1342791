//! Durable timers are killed, their power is cut, and their clocks are moved. What they promise is checked from outside: see the README beside this crate.

mod check;
mod child;
mod clocks;
mod fault;
mod file;
mod flags;
mod kill;
mod log;
mod parent;
mod report;

use std::process::ExitCode;

use flags::Flags;
use waterwheel_chaos::arguments::Arguments;
use waterwheel_chaos::power_cut;

const USAGE: &str = "\
usage: waterwheel-chaos kill      [--rounds N] [--seed N] [--callers N] [--break FAULT]
       waterwheel-chaos clocks    [--rounds N] [--seed N] [--callers N] [--break FAULT]
       waterwheel-chaos power-cut [--seeds N] [--from SEED] [--synchronous extra|full|normal|off]
       waterwheel-chaos check LOG";

fn main() -> ExitCode {
    let mut flags = Flags::new(std::env::args().skip(1));
    let result = match flags.command().as_deref() {
        Some("kill") => kill::run(flags),
        Some("clocks") => clocks::run(flags),
        Some("power-cut") => {
            Arguments::parse(std::env::args().skip(2)).and_then(power_cut::command)
        }
        Some("check") => check_again(flags),
        Some("child") => child::run(flags),
        other => Err(format!("there is no command {other:?}")),
    };
    result.unwrap_or_else(|error| {
        eprintln!("{error}\n\n{USAGE}");
        ExitCode::from(2)
    })
}

/// Reads a log that was kept.
fn check_again(mut flags: Flags) -> Result<ExitCode, String> {
    let log = flags.command().ok_or("which log?")?;
    flags.end()?;
    let text = std::fs::read_to_string(log).map_err(|error| error.to_string())?;
    let mut checker = check::Checker::default();
    for line in text.lines() {
        match line.parse() {
            Ok(line) => checker.feed(line),
            Err(log::InvalidLine) => checker.unreadable(line),
        }
    }
    Ok(match report::verdict(&mut checker) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
