//! Moves timers to another due time, or makes them due now.

use waterwheel_durable_core::store::{Command, Id, Row};
use waterwheel_durable_sqlite::Reader;

use super::calendars;
use super::changes::{Verb, carry_out, report, to_each};
use crate::arguments::{Name, Reschedule, RunNow};
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
    if let Some(name) = &args.calendar {
        // The timer belongs to no occurrence, so it neither replaces nor delays one.
        let calendar = calendars::find(reader, name)?;
        let (handler, payload) = calendar.target()?;
        let row = Row::new(Id::NONE, now(), handler, payload);
        let commands = [Command::Insert(row)];
        return carry_out(reader, &commands, RUN_NOW, change, output)?.into_result();
    }
    let mut later = Vec::new();
    for name in &args.names {
        let found = match name {
            Name::Handle(handle) => reader.find(handle)?,
            Name::Id(id) => reader.search(*id)?,
        };
        match found {
            // A move would put it behind others that are due.
            Some(found) if found.row.due <= now() => {
                report(RUN_NOW, &found.row.id.to_string(), None, change, output)?;
            }
            Some(found) => later.push(Name::Handle(found.handle())),
            None => later.push(name.clone()),
        }
    }
    to_each(reader, &later, Command::RunNow, RUN_NOW, change, output)
}
