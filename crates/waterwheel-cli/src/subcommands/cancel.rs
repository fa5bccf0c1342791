//! Cancels timers.

use waterwheel_durable_core::store::{Bucket, Command, Handle, Id, Scope};
use waterwheel_durable_sqlite::Reader;

use super::changes::{DryRun, Ended, Verb, carry_out, to_each};
use crate::arguments::{Cancel, Change};
use crate::failure::{Failure, say};
use crate::output::Output;
use crate::page;

const VERB: Verb = Verb {
    name: "cancel",
    done: "cancelled",
};

/// The number of timers on the first page. If one of them is refused, the rest is left.
const PAGE: usize = 500;

/// The maximum number of timers cancelled at a time. A service takes commands once a second, so each page is larger than the previous one.
const MAX_AT_ONCE: usize = 8_000;

pub(crate) fn run(reader: &Reader, args: &Cancel, output: &mut Output) -> Result<(), Failure> {
    let change = &args.change;
    match args.scope() {
        None => to_each(reader, &args.names, Command::Cancel, VERB, change, output),
        Some(scope) if args.dry_run => dry_run(reader, &scope, change, output),
        Some(scope) => cancel_all(reader, &scope, change, output),
    }
}

/// The handles of all pending timers, page by page, bucket by bucket: roughly, those that are due first come first, and each commit deletes neighbours. A timer
/// that is retried meanwhile comes up once more.
struct Pages<'a> {
    reader: &'a Reader,
    scope: &'a Scope<'a>,
    after: Option<(Bucket, Id)>,
    limit: usize,
}

impl Pages<'_> {
    fn next(&mut self) -> Result<Vec<Handle>, Failure> {
        let page = self.reader.handles(self.scope, self.after, self.limit)?;
        if let Some((last, bucket)) = page.last() {
            self.after = Some((*bucket, last.id));
        }
        self.limit = (self.limit * 2).min(MAX_AT_ONCE);
        Ok(page.into_iter().map(|(handle, _)| handle).collect())
    }
}

fn pages<'a>(reader: &'a Reader, scope: &'a Scope<'a>) -> Result<Pages<'a>, Failure> {
    page::is_known(reader, scope)?;
    Ok(Pages {
        reader,
        scope,
        after: None,
        limit: PAGE,
    })
}

fn dry_run(
    reader: &Reader,
    scope: &Scope<'_>,
    args: &Change,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut pages = pages(reader, scope)?;
    let mut found = DryRun::new(VERB);
    loop {
        let page = pages.next()?;
        if page.is_empty() {
            return found.report("pending timers", args, output);
        }
        found.add(page.iter().map(|it| it.id));
    }
}

fn cancel_all(
    reader: &Reader,
    scope: &Scope<'_>,
    args: &Change,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut pages = pages(reader, scope)?;
    let mut all = Ended::default();
    // If some timers have fired or are gone, the others are still cancelled.
    while !all.is_refused {
        let page = pages.next()?;
        if page.is_empty() {
            break;
        }
        let commands: Vec<_> = page.into_iter().map(Command::Cancel).collect();
        let ended = carry_out(reader, &commands, VERB, args, output)?;
        all.failed += ended.failed;
        all.is_refused = ended.is_refused;
    }
    if pages.after.is_none() {
        say("no timer is pending");
    }
    all.into_result()
}
