//! Inspects a file of durable timers, and cancels, redrives and pauses timers, while a service may have the file open: see README.md.
//!
//! | file | question |
//! |---|---|
//! | `arguments` | what is asked for? |
//! | `subcommands/` | what does each subcommand do? |
//! | `submit` | is a command carried out here, or by the process that has the file open? |
//! | `failure` | what is reported after a failure, and with which exit code? |
//! | `output`, `table` | how are results printed, for people and for programs? |
//! | `text`, `time`, `timer` | how are payloads, names, times and timers shown? |
//! | `page` | how much is read at a time? |

mod arguments;
mod failure;
mod output;
mod page;
mod subcommands;
mod submit;
mod table;
mod text;
mod time;
mod timer;

use std::process::ExitCode;

use clap::Parser;

use arguments::Arguments;
use failure::Failure;
use output::Output;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and the version are printed in the same way, with exit code 0.
            let _: std::io::Result<()> = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(failure::USAGE));
        }
    };
    let mut output = Output::new();
    let ran = subcommands::run(&arguments, &mut output).and_then(|()| output.end());
    match ran {
        Ok(()) | Err(Failure::Closed) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report(&arguments.file);
            ExitCode::FAILURE
        }
    }
}
