//! Pauses and resumes the deliveries of a namespace.

use std::sync::Arc;

use waterwheel_durable_core::store::Command;
use waterwheel_durable_sqlite::Reader;

use super::changes::{Verb, carry_out};
use crate::arguments::Named;
use crate::failure::Failure;
use crate::output::Output;

const PAUSE: Verb = Verb {
    name: "pause",
    done: "paused",
};

const RESUME: Verb = Verb {
    name: "resume",
    done: "resumed",
};

pub(crate) fn pause(reader: &Reader, args: &Named, output: &mut Output) -> Result<(), Failure> {
    run(reader, args, Command::Pause, PAUSE, output)
}

pub(crate) fn resume(reader: &Reader, args: &Named, output: &mut Output) -> Result<(), Failure> {
    run(reader, args, Command::Resume, RESUME, output)
}

fn run(
    reader: &Reader,
    args: &Named,
    command: fn(Arc<str>) -> Command,
    verb: Verb,
    output: &mut Output,
) -> Result<(), Failure> {
    let commands = [command(args.namespace.as_str().into())];
    carry_out(reader, &commands, verb, &args.change, output)?.into_result()
}
