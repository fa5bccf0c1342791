//! The common part of the subcommands that change something.

use serde::Serialize;
use waterwheel_durable_core::store::{Command, Handle, Id};
use waterwheel_durable_sqlite::Reader;

use crate::arguments::{Change, Name};
use crate::failure::{Failure, say};
use crate::output::Output;
use crate::submit::{NOT_PENDING, NotDone, submit};
use crate::text;

/// The maximum number of ids that a dry run shows.
const SAMPLE: usize = 10;

/// The name of a subcommand, and the words for what it has done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verb {
    pub(super) name: &'static str,
    pub(super) done: &'static str,
}

/// The results of some commands.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// The number of commands that were not carried out.
    pub(super) failed: usize,
    /// Whether one failed for another reason than that its timer has fired or is gone.
    pub(super) is_refused: bool,
}

impl Ended {
    pub(super) fn into_result(self) -> Result<(), Failure> {
        match self.failed {
            0 => Ok(()),
            _ => Err(Failure::Said),
        }
    }
}

/// A line of JSON for each command.
#[derive(Serialize)]
struct Line<'a> {
    action: &'a str,
    name: &'a str,
    is_done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// Reports what became of a command.
pub(super) fn report(
    verb: Verb,
    name: &str,
    error: Option<&str>,
    args: &Change,
    output: &mut Output,
) -> Result<(), Failure> {
    if args.json.json {
        let line = Line {
            action: verb.name,
            name,
            is_done: error.is_none(),
            error,
        };
        return output.json_line(&line).map_err(cut_off);
    }
    let name = text::clean(name);
    match error {
        None => output
            .line(&format!("{} {name}", verb.done))
            .map_err(cut_off)?,
        Some(error) => say(&format!("{name}: {error}")),
    }
    Ok(())
}

/// Carries out commands, and reports for each whether it is done.
pub(super) fn carry_out(
    reader: &Reader,
    commands: &[Command],
    verb: Verb,
    args: &Change,
    output: &mut Output,
) -> Result<Ended, Failure> {
    let mut ended = Ended::default();
    let carried = submit(reader, commands, &args.wait)?;
    for (command, carried) in commands.iter().zip(carried) {
        let name = match (command, &carried) {
            (
                Command::Cancel(handle) | Command::Reschedule(handle, _) | Command::RunNow(handle),
                _,
            ) => handle.id.to_string(),
            (Command::Redrive(id) | Command::Discard(id), _) => id.to_string(),
            (Command::Insert(_), Ok(Some(handle))) => handle.id.to_string(),
            (Command::Insert(row), _) => row.handler.to_string(),
            (Command::Pause(name) | Command::Resume(name), _) => name.to_string(),
            (Command::Policy(change), _) => change.namespace.to_string(),
        };
        let not_done = carried.err();
        if let Some(NotDone { is_gone, .. }) = &not_done {
            ended.failed += 1;
            ended.is_refused |= !is_gone;
        }
        let error = not_done.as_ref().map(|it| &*it.why);
        report(verb, &name, error, args, output)?;
    }
    output.flush().map_err(cut_off)?;
    Ok(ended)
}

/// Applies a command to each of these timers, all in one commit.
pub(super) fn to_each(
    reader: &Reader,
    names: &[Name],
    command: impl Fn(Handle) -> Command,
    verb: Verb,
    args: &Change,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut missing = 0;
    let mut commands = Vec::new();
    for name in names {
        match name {
            Name::Handle(handle) => commands.push(command(handle.clone())),
            Name::Id(id) => match reader.search(*id)? {
                Some(found) => commands.push(command(found.handle())),
                None => {
                    let name = id.to_string();
                    report(verb, &name, Some(NOT_PENDING), args, output)?;
                    missing += 1;
                }
            },
        }
    }
    let mut ended = match commands.is_empty() {
        true => Ended::default(),
        false => carry_out(reader, &commands, verb, args, output)?,
    };
    ended.failed += missing;
    ended.into_result()
}

/// The result of a dry run.
#[derive(Serialize)]
pub(super) struct DryRun {
    action: &'static str,
    is_dry_run: bool,
    count: usize,
    sample: Vec<String>,
}

impl DryRun {
    pub(super) fn new(verb: Verb) -> DryRun {
        DryRun {
            action: verb.name,
            is_dry_run: true,
            count: 0,
            sample: Vec::new(),
        }
    }

    /// Adds the ids of a page.
    pub(super) fn add(&mut self, ids: impl Iterator<Item = Id>) {
        for id in ids {
            self.count += 1;
            if self.sample.len() < SAMPLE {
                self.sample.push(id.to_string());
            }
        }
    }

    /// Reports what the command would do with the `things`, such as timers.
    pub(super) fn report(
        &self,
        things: &str,
        args: &Change,
        output: &mut Output,
    ) -> Result<(), Failure> {
        if args.json.json {
            return output.json_line(self);
        }
        let rest = if self.count > SAMPLE { ", …" } else { "" };
        output.line(&match self.count {
            0 => format!("would {} no {things}", self.action),
            count => format!(
                "would {} {count} {things}: {}{rest}",
                self.action,
                self.sample.join(", ")
            ),
        })
    }
}

/// For a command that only reads, a reader that stops reading is no failure. Here it may leave commands that were not carried out.
fn cut_off(failure: Failure) -> Failure {
    match failure {
        Failure::Closed => Failure::CutOff(None),
        Failure::Output(error) => Failure::CutOff(Some(error)),
        other => other,
    }
}
