//! Which timers are in the file, bucket by bucket?
//!
//! Timers are listed in storage order, so a page reads little more than it returns, however long its bucket is, and operations on its timers affect neighbours in
//! the file. The rows of each handler's seconds and those of each coarser level are in that order already. They are read a few at a time, and merged.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use rusqlite::Connection;
use waterwheel_durable_core::store::{
    Bucket, Due, Handle, HandlePage, Id, Level, PendingCursor, Scope,
};

use super::read::{Handlers, misplaced, sql_limit, stored};

const KEYS: &str = "
    SELECT bucket, id, due, coalesce(far_handler, handler), first_due FROM timers
    WHERE level = ?1 AND handler = ?2 AND (bucket, id) > (?3, ?4)
    ORDER BY bucket, id LIMIT ?5";

/// A page of the timers of some handlers, after examining at most `examined`.
pub(crate) fn page(
    connection: &Connection,
    handlers: &Handlers,
    scope: Scope<'_>,
    after: Option<PendingCursor>,
    limit: usize,
    examined: usize,
) -> rusqlite::Result<HandlePage> {
    let numbers = (1..).zip(handlers.names());
    let numbers = numbers.filter(|(_, name)| scope.contains(name));
    let seconds: Vec<_> = numbers.map(|(number, _)| (Level::Second, number)).collect();
    if seconds.is_empty() {
        // Coarser buckets have rows of all handlers, so they would be read to their end.
        let (handles, next) = (Vec::new(), None);
        return Ok(HandlePage { handles, next });
    }
    let coarser = Level::CASCADING.map(|level| (level, 0));
    let parts: Vec<_> = seconds.into_iter().chain(coarser).collect();
    let at_a_time = limit.min(examined) / parts.len() + 1;
    let parts = parts.into_iter().map(|(level, under)| Part {
        level,
        under,
        after: Some(key(PendingCursor::after_in(level, after))),
        rows: VecDeque::new(),
        at_a_time,
    });
    let mut merged = Merged {
        connection,
        handlers,
        scope,
        parts: parts.collect(),
        first: BinaryHeap::new(),
    };
    for part in 0..merged.parts.len() {
        merged.push(part)?;
    }
    let all = std::iter::from_fn(|| merged.next().transpose());
    HandlePage::of(all, limit, examined)
}

/// The end of the key of a row.
fn key(PendingCursor { bucket, id }: PendingCursor) -> (i64, i64) {
    (bucket.number, stored(id))
}

/// Rows with a common prefix of their keys.
struct Part {
    level: Level,
    /// The handler; 0 in coarser levels.
    under: i64,
    /// The key of the last row that was read, or `None` after the last one of all.
    after: Option<(i64, i64)>,
    rows: VecDeque<(PendingCursor, Found)>,
    at_a_time: usize,
}

/// A row of a part: the number of its handler, and its first due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    handler: i64,
    first_due: Due,
}

impl Part {
    /// Returns the next row.
    fn next(
        &mut self,
        connection: &Connection,
    ) -> rusqlite::Result<Option<(PendingCursor, Found)>> {
        if let (true, Some((bucket, id))) = (self.rows.is_empty(), self.after) {
            let mut keys = connection.prepare_cached(KEYS)?;
            let limit = sql_limit(self.at_a_time);
            let level = self.level;
            let mut rows = keys.query((level.number(), self.under, bucket, id, limit))?;
            self.after = None;
            while let Some(row) = rows.next()? {
                let (number, id): (i64, i64) = (row.get(0)?, row.get(1)?);
                let (due, first_due): (i64, Option<i64>) = (row.get(2)?, row.get(4)?);
                let cursor = PendingCursor {
                    bucket: Bucket { level, number },
                    id: Id::from_stored(id.unsigned_abs()),
                };
                if level.bucket(Due::from_millis(due)) != cursor.bucket {
                    return Err(misplaced(cursor.id));
                }
                let found = Found {
                    handler: row.get(3)?,
                    first_due: Due::from_millis(first_due.unwrap_or(due)),
                };
                self.rows.push_back((cursor, found));
                self.after = Some((number, id));
            }
        }
        Ok(self.rows.pop_front())
    }
}

/// The rows of all parts, in order.
struct Merged<'a> {
    connection: &'a Connection,
    handlers: &'a Handlers,
    scope: Scope<'a>,
    parts: Vec<Part>,
    /// The first row of each part, and the index of the part.
    first: BinaryHeap<Reverse<(PendingCursor, Found, usize)>>,
}

impl Merged<'_> {
    fn push(&mut self, part: usize) -> rusqlite::Result<()> {
        if let Some((cursor, found)) = self.parts[part].next(self.connection)? {
            self.first.push(Reverse((cursor, found, part)));
        }
        Ok(())
    }

    /// Returns the next row, and its handle if it is meant.
    fn next(&mut self) -> rusqlite::Result<Option<(PendingCursor, Option<Handle>)>> {
        let Some(Reverse((cursor, found, part))) = self.first.pop() else {
            return Ok(None);
        };
        self.push(part)?;
        let handler = self.handlers.name(found.handler)?;
        let handle = self.scope.contains(handler).then(|| Handle {
            id: cursor.id,
            due: found.first_due,
            handler: Arc::clone(handler),
        });
        Ok(Some((cursor, handle)))
    }
}
