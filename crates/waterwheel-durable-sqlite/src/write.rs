//! Writes the operations of a commit.

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use waterwheel_durable_core::store::{Bucket, Due, Erased, Handle, Id, Level, Op, Outcome, Row};

use super::archive::{self, Blocks};
use super::counts::Changes;
use super::lsm::{Holder, KeyIndex};
use super::meta;
use super::read::{Handlers, MOVED, extras, first_due, handle, row, starts, stored, timer};

/// If the row already exists, it is the same, and nothing is written or counted.
const PLACE: &str = "
    INSERT OR IGNORE INTO timers
        (level, handler, bucket, id, due, failures, first_due, far_handler, key, payload, starts)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

/// Most timers have neither a tag nor retries, and are written without them.
const PLACE_WITH_EXTRAS: &str = "
    INSERT OR IGNORE INTO timers
        (level, handler, bucket, id, due, failures, first_due, far_handler, key, payload, starts, tag, retries)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

/// Deletes a timer without rows in other tables.
const SETTLE: &str = "
    DELETE FROM timers WHERE level = 0 AND handler = ?1 AND bucket = ?2 AND id = ?3
    AND first_due IS NULL AND key IS NULL AND tag IS NULL";

const TAKE: &str = "
    DELETE FROM timers WHERE level = ?1 AND handler = ?2 AND bucket = ?3 AND id = ?4
    AND far_handler IS ?5
    RETURNING id, due, failures, first_due, key, payload, starts, tag, retries,
        coalesce(far_handler, handler)";

/// Deletes an archived timer, which keeps its key.
const ARCHIVE: &str = "
    DELETE FROM timers WHERE level = 0 AND handler = ?1 AND bucket = ?2 AND id = ?3
    AND (first_due IS NOT NULL) = ?4";

/// An open transaction, and the part of the tables that the store has in memory.
pub(crate) struct Writer<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) handlers: &'a mut Handlers,
    keys: &'a mut KeyIndex,
    place: Statement<'a>,
    settle: Statement<'a>,
    take: Statement<'a>,
    moved: Statement<'a>,
    archive: Statement<'a>,
    blocks: Blocks,
    pub(crate) counts: Changes,
    /// The number of bytes that inserts may take, or `None` if it is unlimited.
    room: Option<u64>,
    /// Whether an insert has found too little room.
    is_full: bool,
}

/// The approximate size of a row without its payload and its key, in all tables.
const BESIDE: u64 = 100;

/// SQLite's usual page size. A row longer than a quarter of it continues on overflow pages.
const PAGE: u64 = 4_096;

/// A statement that many steps of a commit use: it is looked up once.
type Statement<'a> = Option<CachedStatement<'a>>;

fn prepared<'k, 'a>(
    statement: &'k mut Statement<'a>,
    connection: &'a Connection,
    sql: &str,
) -> rusqlite::Result<&'k mut CachedStatement<'a>> {
    match statement {
        Some(statement) => Ok(statement),
        None => Ok(statement.insert(connection.prepare_cached(sql)?)),
    }
}

impl<'a> Writer<'a> {
    pub(crate) fn new(
        connection: &'a Connection,
        handlers: &'a mut Handlers,
        keys: &'a mut KeyIndex,
        room: Option<u64>,
    ) -> Writer<'a> {
        Writer {
            connection,
            handlers,
            keys,
            place: None,
            settle: None,
            take: None,
            moved: None,
            archive: None,
            blocks: Blocks::default(),
            counts: Changes::default(),
            room,
            is_full: false,
        }
    }

    /// Whether an insert was refused for lack of space.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(crate) fn step(&mut self, op: &Op) -> rusqlite::Result<Outcome> {
        match op {
            Op::Insert(row, bucket) => match self.has_room(row) {
                true => self.insert(row, *bucket),
                false => self.refuse(row),
            },
            Op::Settle(row) => {
                if !self.settle_plain(row)?
                    && let Some(row) = self.take_from_second(row)?
                {
                    self.forget(&row)?;
                }
                Ok(Outcome::Done)
            }
            Op::Archive(row, at) => self.archive(row, *at),
            Op::Expire {
                handler,
                before,
                limit,
            } => {
                self.write_blocks()?;
                match self.handlers.number(handler) {
                    Some(handler) => {
                        archive::expire(self.connection, self.keys, handler, *before, *limit)
                    }
                    None => Ok(Outcome::Expired { is_empty: true }),
                }
            }
            Op::Start(row) => self.start(row),
            Op::Cancel(handle) => {
                let row = self.take(handle)?;
                if let Some(row) = &row {
                    self.forget(row)?;
                }
                Ok(Outcome::Cancelled(row.is_some()))
            }
            Op::Reschedule(handle, due, bucket) => {
                let mut row = self.take(handle)?;
                if let Some(row) = &mut row {
                    self.shift(row, *due, *bucket)?;
                }
                Ok(Outcome::Rescheduled(row))
            }
            Op::Retry(row, due, bucket) | Op::Snooze(row, due, bucket) => {
                if let Some(mut row) = self.take_from_second(row)? {
                    let has_failed = matches!(op, Op::Retry(..));
                    row.failures = row.failures.saturating_add(has_failed.into());
                    self.shift(&mut row, *due, *bucket)?;
                }
                Ok(Outcome::Done)
            }
            Op::Bury { row, at, error } => {
                if let Some(row) = self.take_from_second(row)? {
                    self.forget(&row)?;
                    self.bury(&row, *at, error)?;
                }
                Ok(Outcome::Done)
            }
            Op::Redrive(id, due, bucket) => {
                let mut row = self.unbury(*id)?;
                if let Some(row) = &mut row {
                    row.failures = 0;
                    row.key = None;
                    self.shift(row, *due, *bucket)?;
                    self.note_tag(row)?;
                }
                Ok(Outcome::Redriven(row))
            }
            Op::Discard(id) => {
                let row = self.unbury(*id)?;
                Ok(Outcome::Cancelled(row.is_some()))
            }
            Op::Erase { handler, key } => {
                self.write_blocks()?;
                match self.handlers.number(handler) {
                    Some(handler) => self.erase(handler, key).map(Outcome::Erased),
                    None => Ok(Outcome::Erased(Erased::default())),
                }
            }
            Op::Cascade { bucket, now, limit } => self.cascade(*bucket, *now, *limit),
            Op::Set(name, value) => self.set(name, value.as_deref()),
            Op::Reply(number, answer) => {
                let sql = "UPDATE commands SET answer = ?2 WHERE number = ?1";
                let mut commands = self.connection.prepare_cached(sql)?;
                commands.execute((i64::try_from(*number).unwrap_or(i64::MAX), &**answer))?;
                Ok(Outcome::Done)
            }
            // Nobody takes over a file that is open.
            Op::HandOver(_) | Op::Report(..) => Ok(Outcome::Done),
            Op::NextEpoch(after) => {
                meta::raise_to(self.connection, *after)?;
                meta::raise(self.connection, 1).map(Outcome::Epoch)
            }
            Op::All(steps) => {
                let room = self.room.take();
                let outcomes = steps.iter().map(|op| self.step(op));
                let outcomes = outcomes.collect::<Result<_, _>>().map(Outcome::All);
                self.room = room;
                outcomes
            }
        }
    }

    /// Writes what this many steps have left to be written together.
    pub(crate) fn finish(self, steps: usize) -> rusqlite::Result<()> {
        self.keys.write(self.connection, steps)?;
        self.blocks.write(self.connection)?;
        self.counts.write(self.connection)
    }

    fn archive(&mut self, row: &Row, at: Due) -> rusqlite::Result<Outcome> {
        let Some(handler) = self.handlers.number(&row.handler) else {
            return Ok(Outcome::Done);
        };
        // With at most two statements: one that returns what it has deleted takes longer than both.
        let delete = prepared(&mut self.archive, self.connection, ARCHIVE)?;
        let (second, id) = (row.due.second(), stored(row.id));
        let mut delete = |has_moved| delete.execute((handler, second, id, has_moved));
        let is_plain = delete(false)? == 1;
        let has_moved = !is_plain && delete(true)? == 1;
        if has_moved {
            self.forget_move(row.id)?;
        }
        if is_plain || has_moved {
            self.counts
                .pending(Level::Second.bucket(row.due), handler, -1);
            self.forget_tag(row)?;
            self.blocks.add(handler, &row.archived(at));
        }
        Ok(Outcome::Done)
    }

    fn start(&self, row: &Row) -> rusqlite::Result<Outcome> {
        let sql = "UPDATE timers SET starts = ?4
            WHERE level = 0 AND handler = ?1 AND bucket = ?2 AND id = ?3";
        let mut start = self.connection.prepare_cached(sql)?;
        let handler = self.handlers.number(&row.handler);
        let more = starts(row).saturating_add(1);
        start.execute((handler, row.due.second(), stored(row.id), more))?;
        Ok(Outcome::Done)
    }

    fn set(&self, name: &str, value: Option<&[u8]>) -> rusqlite::Result<Outcome> {
        match value {
            Some(value) => {
                let sql = "INSERT OR REPLACE INTO settings (name, value) VALUES (?1, ?2)";
                self.connection
                    .prepare_cached(sql)?
                    .execute((name, value))?;
            }
            None => {
                let sql = "DELETE FROM settings WHERE name = ?1";
                self.connection.prepare_cached(sql)?.execute([name])?;
            }
        }
        Ok(Outcome::Done)
    }

    /// Counts an insert. After one that has found no room, none finds any.
    fn has_room(&mut self, row: &Row) -> bool {
        let Some(room) = &mut self.room else {
            return true;
        };
        // A tag is written twice.
        let tag = row.tag().map_or(0, |tag| tag.len() as u64 + BESIDE / 2);
        let bytes = row.bytes() as u64 + tag + BESIDE;
        let own_pages = match bytes > PAGE / 4 {
            true => bytes.next_multiple_of(PAGE),
            false => 0,
        };
        // Split pages are half empty.
        let takes = 2 * bytes.min(PAGE / 4) + own_pages;
        *room = room.saturating_sub(takes);
        *room > 0
    }

    /// Refuses an insert. The answer is that it exists if another timer has its key.
    fn refuse(&mut self, row: &Row) -> rusqlite::Result<Outcome> {
        let handler = self.handlers.number(&row.handler);
        if let (Some(handler), Some(key)) = (handler, &row.key)
            && let Some(other) = self.holder(row, handler, key)?
        {
            return Ok(Outcome::Exists(other));
        }
        self.is_full = true;
        Ok(Outcome::Full)
    }

    /// Returns the other timer that has the key.
    fn holder(&self, row: &Row, handler: i64, key: &[u8]) -> rusqlite::Result<Option<Handle>> {
        let found = self
            .keys
            .find(self.connection, self.keys.name(handler, key))?;
        let other = found.filter(|holder| holder.id != stored(row.id));
        Ok(other.map(|holder| handle(&row.handler, holder)))
    }

    fn insert(&mut self, row: &Row, bucket: Bucket) -> rusqlite::Result<Outcome> {
        if let Some(key) = &row.key {
            let handler = self.handlers.intern(&row.handler, self.connection)?;
            let name = self.keys.name(handler, key);
            match self.keys.find(self.connection, name)? {
                // The same timer is written once more, in the same place.
                Some(Holder { id, .. }) if id == stored(row.id) => {}
                Some(other) => return Ok(Outcome::Exists(handle(&row.handler, other))),
                None => {
                    let (id, due) = (stored(row.id), row.first_due.as_millis());
                    self.keys.take(name, Holder { id, due });
                }
            }
        }
        self.place(row, bucket)?;
        self.note_move(row)?;
        self.note_tag(row)?;
        Ok(Outcome::Inserted)
    }

    /// Notes where a timer is that is not where its handle says.
    fn note_move(&self, row: &Row) -> rusqlite::Result<()> {
        if row.has_moved() {
            let sql = "INSERT OR REPLACE INTO moved (id, due) VALUES (?1, ?2)";
            let mut moved = self.connection.prepare_cached(sql)?;
            moved.execute((stored(row.id), row.due.as_millis()))?;
        }
        Ok(())
    }

    fn place(&mut self, row: &Row, bucket: Bucket) -> rusqlite::Result<()> {
        let number = self.handlers.intern(&row.handler, self.connection)?;
        let (handler, bucket_number, far_handler) = match bucket.level {
            Level::Second => (number, row.due.second(), None),
            _ => (0, bucket.number, Some(number)),
        };
        let (tag, retries) = extras(row);
        let values = params![
            bucket.level.number(),
            handler,
            bucket_number,
            stored(row.id),
            row.due.as_millis(),
            row.failures,
            first_due(row),
            far_handler,
            row.key.as_deref(),
            &*row.payload,
            starts(row),
            tag,
            retries,
        ];
        let placed = match row.extras.is_some() {
            true => {
                let mut place = self.connection.prepare_cached(PLACE_WITH_EXTRAS)?;
                place.execute(values)?
            }
            false => {
                let place = prepared(&mut self.place, self.connection, PLACE)?;
                place.execute(&values[..11])?
            }
        };
        if placed == 1 {
            self.counts.pending(bucket, number, 1);
        }
        Ok(())
    }

    fn settle_plain(&mut self, row: &Row) -> rusqlite::Result<bool> {
        let Some(handler) = self.handlers.number(&row.handler) else {
            return Ok(false);
        };
        let settle = prepared(&mut self.settle, self.connection, SETTLE)?;
        let second = Level::Second.bucket(row.due);
        let is_settled = settle.execute((handler, second.number, stored(row.id)))? == 1;
        if is_settled {
            self.counts.pending(second, handler, -1);
        }
        Ok(is_settled)
    }

    fn take_from_second(&mut self, row: &Row) -> rusqlite::Result<Option<Row>> {
        match self.handlers.number(&row.handler) {
            Some(handler) => self.take_from(Level::Second.bucket(row.due), handler, row.id),
            None => Ok(None),
        }
    }

    /// Takes out a timer from whichever bucket of its due time it is in.
    fn take(&mut self, handle: &Handle) -> rusqlite::Result<Option<Row>> {
        let moved = prepared(&mut self.moved, self.connection, MOVED)?;
        let moved: Option<i64> = moved
            .query_row([stored(handle.id)], |row| row.get(0))
            .optional()?;
        let due = moved.map_or(handle.due, Due::from_millis);
        let Some(handler) = self.handlers.number(&handle.handler) else {
            return Ok(None);
        };
        for level in [Level::Second].into_iter().chain(Level::CASCADING) {
            let row = self.take_from(level.bucket(due), handler, handle.id)?;
            if row.is_some() {
                return Ok(row);
            }
        }
        Ok(None)
    }

    fn take_from(&mut self, bucket: Bucket, handler: i64, id: Id) -> rusqlite::Result<Option<Row>> {
        let take = prepared(&mut self.take, self.connection, TAKE)?;
        // A coarser bucket has the rows of all handlers.
        let (under, owner) = match bucket.level {
            Level::Second => (handler, None),
            _ => (0, Some(handler)),
        };
        let level = bucket.level.number();
        let at = (level, under, bucket.number, stored(id), owner);
        let taken = take.query_row(at, |from| {
            row("timers", from, self.handlers.name(from.get(9)?)?)
        });
        let taken = taken.optional()?;
        if taken.is_some() {
            self.counts.pending(bucket, handler, -1);
        }
        Ok(taken)
    }

    /// Deletes the rows of a timer in other tables.
    fn forget(&mut self, row: &Row) -> rusqlite::Result<()> {
        if row.has_moved() {
            self.forget_move(row.id)?;
        }
        if let Some(key) = &row.key
            && let Some(handler) = self.handlers.number(&row.handler)
        {
            self.keys.free(self.keys.name(handler, key));
        }
        self.forget_tag(row)
    }

    /// Notes the handle of a timer under its tag.
    fn note_tag(&self, row: &Row) -> rusqlite::Result<()> {
        if let Some(tag) = row.tag() {
            let sql = "INSERT OR REPLACE INTO tags (tag, id, handler, due) VALUES (?1, ?2, ?3, ?4)";
            let mut tags = self.connection.prepare_cached(sql)?;
            let handler = self.handlers.number(&row.handler);
            tags.execute((tag, stored(row.id), handler, row.first_due.as_millis()))?;
        }
        Ok(())
    }

    fn forget_tag(&self, row: &Row) -> rusqlite::Result<()> {
        if let Some(tag) = row.tag() {
            let sql = "DELETE FROM tags WHERE tag = ?1 AND id = ?2";
            let mut tags = self.connection.prepare_cached(sql)?;
            tags.execute((tag, stored(row.id)))?;
        }
        Ok(())
    }

    fn forget_move(&self, id: Id) -> rusqlite::Result<()> {
        let sql = "DELETE FROM moved WHERE id = ?1";
        let mut moved = self.connection.prepare_cached(sql)?;
        moved.execute([stored(id)])?;
        Ok(())
    }

    /// Gives a timer that was taken out another due time, and writes it there.
    fn shift(&mut self, row: &mut Row, due: Due, bucket: Bucket) -> rusqlite::Result<()> {
        let had_moved = row.has_moved();
        row.due = due;
        row.starts = 0;
        self.note_move(row)?;
        if had_moved && !row.has_moved() {
            self.forget_move(row.id)?;
        }
        self.place(row, bucket)
    }

    fn bury(&mut self, row: &Row, at: Due, error: &str) -> rusqlite::Result<()> {
        let sql = "INSERT OR IGNORE INTO dead
            (id, handler, due, failures, first_due, key, tag, retries, payload, at, error, starts)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        let (tag, retries) = extras(row);
        let handler = self.handlers.number(&row.handler);
        let mut dead = self.connection.prepare_cached(sql)?;
        let buried = dead.execute(params![
            stored(row.id),
            handler,
            row.due.as_millis(),
            row.failures,
            first_due(row),
            row.key.as_deref(),
            tag,
            retries,
            &*row.payload,
            at.as_millis(),
            error,
            starts(row),
        ])?;
        if let Some(handler) = handler.filter(|_| buried == 1) {
            self.counts.dead(handler, error, 1);
        }
        Ok(())
    }

    /// Writes the records of earlier steps, for a step that reads the archive.
    fn write_blocks(&mut self) -> rusqlite::Result<()> {
        std::mem::take(&mut self.blocks).write(self.connection)
    }

    fn erase(&mut self, handler: i64, key: &[u8]) -> rusqlite::Result<Erased> {
        let mut erased = Erased::default();
        let sql = "DELETE FROM dead WHERE handler = ?1 AND key = ?2 RETURNING error";
        let mut dead = self.connection.prepare_cached(sql)?;
        let mut rows = dead.query((handler, key))?;
        while let Some(row) = rows.next()? {
            self.counts.dead(handler, row.get_ref(0)?.as_str()?, -1);
            erased.dead_letters += 1;
        }
        let name = self.keys.name(handler, key);
        if let Some(holder) = self.keys.find(self.connection, name)?
            && !self.is_pending(handler, holder)?
        {
            erased.is_archived = archive::erase_key(self.connection, handler, holder.id)?;
            if erased.is_archived {
                self.keys.free(name);
            }
        }
        Ok(erased)
    }

    /// Whether the timer that has a key was not delivered.
    fn is_pending(&self, handler: i64, holder: Holder) -> rusqlite::Result<bool> {
        let handle = handle(self.handlers.name(handler)?, holder);
        Ok(timer(self.connection, self.handlers, &handle)?.is_some())
    }

    fn unbury(&mut self, id: Id) -> rusqlite::Result<Option<Row>> {
        let sql = "DELETE FROM dead WHERE id = ?1
            RETURNING id, due, failures, first_due, key, payload, starts, tag, retries, handler, error";
        let mut dead = self.connection.prepare_cached(sql)?;
        let taken = dead.query_row([stored(id)], |from| {
            let handler: i64 = from.get(9)?;
            let row = row("dead", from, self.handlers.name(handler)?)?;
            self.counts.dead(handler, from.get_ref(10)?.as_str()?, -1);
            Ok(row)
        });
        taken.optional()
    }
}
