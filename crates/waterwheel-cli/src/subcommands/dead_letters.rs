//! Redrives and discards dead letters.

use waterwheel_durable_core::store::{Command, Id};
use waterwheel_durable_sqlite::Reader;

use super::changes::{DryRun, Verb, carry_out};
use crate::arguments::DeadLetters;
use crate::failure::{Failure, say};
use crate::output::Output;
use crate::page;

const REDRIVE: Verb = Verb {
    name: "redrive",
    done: "redriven",
};

const DISCARD: Verb = Verb {
    name: "discard",
    done: "discarded",
};

/// The number of dead letters in one commit. If one of them is refused, the rest is left.
const PAGE: usize = 500;

pub(crate) fn redrive(
    reader: &Reader,
    args: &DeadLetters,
    output: &mut Output,
) -> Result<(), Failure> {
    run(reader, args, Command::Redrive, REDRIVE, output)
}

pub(crate) fn discard(
    reader: &Reader,
    args: &DeadLetters,
    output: &mut Output,
) -> Result<(), Failure> {
    run(reader, args, Command::Discard, DISCARD, output)
}

fn run(
    reader: &Reader,
    args: &DeadLetters,
    command: fn(Id) -> Command,
    verb: Verb,
    output: &mut Output,
) -> Result<(), Failure> {
    let change = &args.change;
    if !args.ids.is_empty() {
        let commands: Vec<_> = args.ids.iter().copied().map(command).collect();
        return carry_out(reader, &commands, verb, change, output)?.into_result();
    }
    let scope = args.scope();
    page::is_known(reader, &scope)?;
    let mut found = DryRun::new(verb);
    let mut after = Id::NONE;
    loop {
        let page = reader.dead(&scope, after, page::limit(PAGE))?;
        let Some(last) = page.last() else {
            break;
        };
        after = last.row.id;
        let ids = page.iter().map(|it| it.row.id);
        if args.dry_run {
            found.add(ids);
        } else {
            let commands: Vec<_> = ids.map(command).collect();
            let ended = carry_out(reader, &commands, verb, change, output)?;
            if ended.failed > 0 {
                return ended.into_result();
            }
        }
    }
    if args.dry_run {
        return found.report("dead letters", change, output);
    }
    if after == Id::NONE {
        say("there are no dead letters");
    }
    Ok(())
}
