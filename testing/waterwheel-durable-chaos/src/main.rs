//! Durable timers are killed, copied, their power is cut, and their clocks are moved. What they promise is checked from outside: see the README beside this crate.

mod backup;
mod check;
mod child;
mod clocks;
mod copies;
mod damaged_wal;
mod disk_full;
mod fault;
mod file;
mod gauge;
mod kill;
mod log;
mod log_file;
mod parent;
mod report;
mod script;
mod soak;

use std::process::ExitCode;

use waterwheel_durable_chaos::arguments::Arguments;
use waterwheel_durable_chaos::power_cut;

const USAGE: &str = "\
usage: waterwheel-durable-chaos kill      [--rounds N] [--seed N] [--callers N] [--break FAULT]
       waterwheel-durable-chaos clocks    [--rounds N] [--seed N] [--callers N] [--break FAULT]
       waterwheel-durable-chaos disk-full [--rounds N] [--seed N] [--callers N] [--folder FOLDER] [--memory true] [--break FAULT]
       waterwheel-durable-chaos backup    [--rounds N] [--seed N] [--callers N] [--break FAULT]
       waterwheel-durable-chaos damaged-wal [--rounds N] [--seed N] [--callers N] [--break without-note]
       waterwheel-durable-chaos soak      [--minutes N] [--rate N] [--seed N] [--callers N] [--break FAULT]
       waterwheel-durable-chaos power-cut [--seeds N] [--from SEED] [--synchronous extra|full|normal|off]
       waterwheel-durable-chaos check LOG";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let result = match command.as_str() {
        "kill" => Arguments::parse(words).and_then(kill::run),
        "clocks" => Arguments::parse(words).and_then(clocks::run),
        "backup" => Arguments::parse(words).and_then(backup::run),
        "damaged-wal" => Arguments::parse(words).and_then(damaged_wal::run),
        "disk-full" => disk_full::run(words.collect()),
        "soak" => Arguments::parse(words).and_then(soak::run),
        "power-cut" => Arguments::parse(words).and_then(power_cut::command),
        "check" => check_again(words.next()),
        "child" => Arguments::parse(words).and_then(child::run),
        other => Err(format!("there is no command {other:?}")),
    };
    result.unwrap_or_else(|error| {
        eprintln!("{error}\n\n{USAGE}");
        ExitCode::from(2)
    })
}

/// Reads a log that was kept.
fn check_again(log: Option<String>) -> Result<ExitCode, String> {
    let log = log.ok_or("which log?")?;
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
