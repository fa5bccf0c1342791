//! Looks into a file of durable timers, and cancels, redrives and pauses what is in it, beside the service that has it open: see README.md.
//!
//! | file | question |
//! |---|---|
//! | `arguments` | what is asked for? |
//! | `subcommands/` | what does each subcommand do? |
//! | `submit` | is it done here, or by the process that has the file open? |
//! | `failure` | what is said when it does not work, and with which exit code? |
//! | `output`, `table` | how is it printed, for people and for programs? |
//! | `text`, `time`, `timer` | how is a payload, a name, a time, a timer shown? |
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
            // Help and the version as well, with the code 0.
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
