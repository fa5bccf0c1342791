//! Moves timers to another due time, or makes them due now.

use waterwheel_durable_core::store::{Command, Id, Row};
use waterwheel_durable_sqlite::Reader;

use super::calendars;
use super::changes::{Verb, carry_out, to_each};
use crate::arguments::{Reschedule, RunNow};
use crate::failure::Failure;
use crate::output::Output;
use crate::time::now;

const RESCHEDULE: Verb = Verb {
    name: "reschedule",
    done: "rescheduled",
};

const RUN_NOW: Verb = Verb {
    name: "run-now",
    done: "due now:",
};

pub(crate) fn reschedule(
    reader: &Reader,
    args: &Reschedule,
    output: &mut Output,
) -> Result<(), Failure> {
    let due = args.due(now());
    let command = |handle| Command::Reschedule(handle, due);
    to_each(
        reader,
        &args.names,
        command,
        RESCHEDULE,
        &args.change,
        output,
    )
}

pub(crate) fn run_now(reader: &Reader, args: &RunNow, output: &mut Output) -> Result<(), Failure> {
    let change = &args.change;
    let Some(name) = &args.calendar else {
        return to_each(
            reader,
            &args.names,
            Command::RunNow,
            RUN_NOW,
            change,
            output,
        );
    };
    // The timer belongs to no occurrence, so it neither replaces nor delays one.
    let calendar = calendars::find(reader, name)?;
    let (handler, payload) = calendar.target()?;
    let row = Row::new(Id::NONE, now(), handler, payload);
    let commands = [Command::Insert(row)];
    carry_out(reader, &commands, RUN_NOW, change, output)?.into_result()
}
