//! Cancels timers.

use waterwheel_durable_core::store::{Command, Handle, Id, PendingCursor, Scope};
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
        Some(scope) => {
            page::is_known(reader, &scope)?;
            let pages = Pages {
                reader,
                scope,
                tag: args.tag.as_deref(),
                after: None,
                after_id: Id::NONE,
                limit: PAGE,
                is_last: false,
            };
            match args.dry_run {
                true => dry_run(pages, change, output),
                false => cancel_all(reader, pages, change, output),
            }
        }
    }
}

/// The handles of pending timers, page by page. All of them come bucket by bucket: roughly, those that are due first come first, and each commit deletes
/// neighbours. A timer that is retried meanwhile comes up once more. Those with a tag come in order of their ids.
struct Pages<'a> {
    reader: &'a Reader,
    scope: Scope<'a>,
    tag: Option<&'a str>,
    /// The end of the previous page, in storage order or, with a tag, by id.
    after: Option<PendingCursor>,
    after_id: Id,
    limit: usize,
    is_last: bool,
}

impl Pages<'_> {
    /// Returns the next page; empty after the last.
    fn next(&mut self) -> Result<Vec<Handle>, Failure> {
        if let Some(tag) = self.tag {
            return self.next_tagged(tag);
        }
        let mut handles = Vec::new();
        while handles.is_empty() && !self.is_last {
            let page = self.reader.handles(self.scope, self.after, self.limit)?;
            handles = page.handles;
            (self.after, self.is_last) = (page.next, page.next.is_none());
        }
        self.limit = (self.limit * 2).min(MAX_AT_ONCE);
        Ok(handles.into_iter().map(|(_, handle)| handle).collect())
    }

    fn next_tagged(&mut self, tag: &str) -> Result<Vec<Handle>, Failure> {
        loop {
            let page = self.reader.tagged(tag, self.after_id, MAX_AT_ONCE)?;
            let Some(last) = page.last() else {
                return Ok(Vec::new());
            };
            self.after_id = last.id;
            let own = page
                .into_iter()
                .filter(|it| self.scope.contains(&it.handler));
            let own: Vec<_> = own.collect();
            if !own.is_empty() {
                return Ok(own);
            }
        }
    }
}

fn dry_run(mut pages: Pages<'_>, args: &Change, output: &mut Output) -> Result<(), Failure> {
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
    mut pages: Pages<'_>,
    args: &Change,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut is_any = false;
    let mut all = Ended::default();
    // If some timers have fired or are gone, the others are still cancelled.
    while !all.is_refused {
        let page = pages.next()?;
        if page.is_empty() {
            break;
        }
        is_any = true;
        let commands: Vec<_> = page.into_iter().map(Command::Cancel).collect();
        let ended = carry_out(reader, &commands, VERB, args, output)?;
        all.failed += ended.failed;
        all.is_refused = ended.is_refused;
    }
    if !is_any {
        say("no timer is pending");
    }
    all.into_result()
}
