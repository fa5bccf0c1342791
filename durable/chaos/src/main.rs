//! `cargo run --release -p waterwheel-chaos -- COMMAND`: see [`USAGE`].

use std::process::ExitCode;

use waterwheel_chaos::arguments::Arguments;
use waterwheel_chaos::power_cut;

const USAGE: &str = "usage: waterwheel-chaos COMMAND

power-cut [--seeds N] [--from SEED] [--synchronous extra|full|normal|off]
    cuts the power of a SQLite store in the life of each seed, and looks at what is left";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let run = Arguments::parse(arguments).and_then(|arguments| match command.as_str() {
        "power-cut" => power_cut::command(arguments),
        _ => Err(format!("there is no command {command:?}")),
    });
    match run {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}
