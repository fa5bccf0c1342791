//! Cancels, redrives, discards, pauses and resumes.

use waterwheel_durable_core::store::{Command, Id, Scope};
use waterwheel_durable_sqlite::Reader;

use crate::arguments::{Cancel, DeadLetters, Name, Named, Wait};
use crate::failure::{Failure, say};
use crate::output::Output;
use crate::page;
use crate::submit::{NOT_PENDING, NotDone, submit};
use crate::text;

/// The number of dead letters in one commit. If one of them is refused, the rest is left.
const PAGE: usize = 500;

/// The maximum number of timers cancelled at a time. A service takes commands once a second, so each page is larger than the previous one.
const MAX_AT_ONCE: usize = 8_000;

pub(crate) fn cancel(reader: &Reader, args: &Cancel, output: &mut Output) -> Result<(), Failure> {
    if let Some(scope) = args.scope() {
        return cancel_all(reader, &scope, &args.wait, output);
    }
    let mut missing = 0;
    let mut commands = Vec::new();
    for name in &args.names {
        match name {
            Name::Handle(handle) => commands.push(Command::Cancel(handle.clone())),
            Name::Id(id) => match reader.search(*id)? {
                Some(found) => commands.push(Command::Cancel(found.handle())),
                None => {
                    say(&format!("{id}: {NOT_PENDING}"));
                    missing += 1;
                }
            },
        }
    }
    let ended = all(reader, &commands, &args.wait, "cancelled", output)?;
    said(missing + ended.failed)
}

/// Cancels pending timers, bucket by bucket: roughly, those that are due first come first, and each commit deletes neighbours. A timer that is retried
/// meanwhile comes up once more.
fn cancel_all(
    reader: &Reader,
    scope: &Scope<'_>,
    wait: &Wait,
    output: &mut Output,
) -> Result<(), Failure> {
    page::is_known(reader, scope)?;
    let (mut after, mut limit, mut failed) = (None, PAGE, 0);
    loop {
        let page = reader.handles(scope, after, limit)?;
        let Some((last, bucket)) = page.last() else {
            break;
        };
        after = Some((*bucket, last.id));
        let commands = page.into_iter().map(|(handle, _)| Command::Cancel(handle));
        let commands: Vec<_> = commands.collect();
        let ended = all(reader, &commands, wait, "cancelled", output)?;
        failed += ended.failed;
        // If some timers have fired or are gone, the others are still cancelled.
        if ended.is_refused {
            break;
        }
        limit = (limit * 2).min(MAX_AT_ONCE);
    }
    if after.is_none() {
        say("no timer is pending");
    }
    said(failed)
}

pub(crate) fn redrive(
    reader: &Reader,
    args: &DeadLetters,
    output: &mut Output,
) -> Result<(), Failure> {
    dead_letters(reader, args, Command::Redrive, "redriven", output)
}

pub(crate) fn discard(
    reader: &Reader,
    args: &DeadLetters,
    output: &mut Output,
) -> Result<(), Failure> {
    dead_letters(reader, args, Command::Discard, "discarded", output)
}

fn dead_letters(
    reader: &Reader,
    args: &DeadLetters,
    command: fn(Id) -> Command,
    done: &str,
    output: &mut Output,
) -> Result<(), Failure> {
    let wait = &args.wait;
    if !args.ids.is_empty() {
        let commands: Vec<_> = args.ids.iter().copied().map(command).collect();
        return said(all(reader, &commands, wait, done, output)?.failed);
    }
    let scope = args.scope();
    page::is_known(reader, &scope)?;
    let (mut after, mut failed) = (Id::NONE, 0);
    while failed == 0 {
        let page = reader.dead(&scope, after, page::limit(PAGE))?;
        let Some(last) = page.last() else {
            break;
        };
        after = last.row.id;
        let commands: Vec<_> = page.iter().map(|it| command(it.row.id)).collect();
        failed = all(reader, &commands, wait, done, output)?.failed;
    }
    if after == Id::NONE {
        say("there are no dead letters");
    }
    said(failed)
}

pub(crate) fn pause(reader: &Reader, args: &Named, output: &mut Output) -> Result<(), Failure> {
    let commands = [Command::Pause(args.namespace.as_str().into())];
    said(all(reader, &commands, &args.wait, "paused", output)?.failed)
}

pub(crate) fn resume(reader: &Reader, args: &Named, output: &mut Output) -> Result<(), Failure> {
    let commands = [Command::Resume(args.namespace.as_str().into())];
    said(all(reader, &commands, &args.wait, "resumed", output)?.failed)
}

/// The results of some commands.
#[derive(Debug, Default)]
struct Ended {
    /// The number of commands that were not carried out.
    failed: usize,
    /// Whether one failed for another reason than that its timer has fired or is gone.
    is_refused: bool,
}

/// Carries out commands, and reports for each whether it is done.
fn all(
    reader: &Reader,
    commands: &[Command],
    wait: &Wait,
    done: &str,
    output: &mut Output,
) -> Result<Ended, Failure> {
    let mut ended = Ended::default();
    for (command, carried) in commands.iter().zip(submit(reader, commands, wait)?) {
        let name = text::clean(&match command {
            Command::Cancel(handle) => handle.id.to_string(),
            Command::Redrive(id) | Command::Discard(id) => id.to_string(),
            Command::Pause(name) | Command::Resume(name) => name.to_string(),
        });
        match carried {
            Ok(()) => output.line(&format!("{done} {name}")).map_err(cut_off)?,
            Err(NotDone { why, is_gone }) => {
                say(&format!("{name}: {why}"));
                ended.failed += 1;
                ended.is_refused |= !is_gone;
            }
        }
    }
    output.flush().map_err(cut_off)?;
    Ok(ended)
}

/// For a command that only reads, a reader that stops reading is no failure. Here it may leave commands that were not carried out.
fn cut_off(failure: Failure) -> Failure {
    match failure {
        Failure::Closed => Failure::CutOff(None),
        Failure::Output(error) => Failure::CutOff(Some(error)),
        other => other,
    }
}

fn said(failed: usize) -> Result<(), Failure> {
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Said),
    }
}
