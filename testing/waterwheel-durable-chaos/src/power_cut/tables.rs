//! What must the tables have, and what do they have?
//!
//! A model of the steps of a commit, and a reader of the file, both without the store's code.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Row as SqlRow};
use waterwheel_durable_core::store::{Bucket, Due, Handle, Level, Op, PageLimit, Row};

use super::archive::Archive;
use crate::keys::{self, each};

type Bytes = Vec<u8>;

const EPOCH: &str = "SELECT value FROM meta WHERE key = 'epoch'";

/// What is in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    pub(crate) epoch: i64,
    pub(crate) timers: BTreeMap<i64, Timer>,
    /// The timer that has a key, and its due time as it was inserted.
    keys: BTreeMap<(String, Bytes), (i64, i64)>,
    moved: BTreeMap<i64, i64>,
    pub(crate) dead: BTreeMap<i64, Dead>,
    pub(crate) archive: Archive,
    settings: BTreeMap<String, Bytes>,
    pub(crate) commands: BTreeMap<i64, Command>,
    pub(crate) handlers: BTreeSet<String>,
}

/// A timer, and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Timer {
    pub(crate) level: i64,
    pub(crate) bucket: i64,
    pub(crate) due: i64,
    pub(crate) handler: String,
    pub(crate) failures: i64,
    pub(crate) has_moved: bool,
    pub(crate) key: Option<Bytes>,
    pub(crate) payload: Bytes,
    pub(crate) starts: i64,
}

/// What another process asks of the one that has the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    body: String,
    pub(crate) is_taken: bool,
    answer: Option<String>,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dead {
    due: i64,
    handler: String,
    failures: i64,
    has_moved: bool,
    key: Option<Bytes>,
    payload: Bytes,
    at: i64,
    error: String,
    starts: i64,
}

/// The lengths of the levels, and how long before its start a bucket cascades.
const LEVELS: [(i64, i64); 4] = [
    (1_000, 0),
    (60_000, 15_000),
    (3_600_000, 180_000),
    (86_400_000, 3_600_000),
];

impl Tables {
    /// Does a step, as it is promised.
    pub(crate) fn step(&mut self, op: &Op) {
        match op {
            Op::Insert(row, bucket) => self.insert(row, *bucket),
            Op::Settle(row) => drop(self.take_near(row).map(|timer| self.forget(row, &timer))),
            Op::Cancel(handle) => {
                if let Some(timer) = self.take(handle) {
                    self.forget_id(number(handle.id.get()), &timer);
                }
            }
            Op::Reschedule(handle, due, bucket) => {
                if let Some(timer) = self.take(handle) {
                    self.shift(number(handle.id.get()), timer, *due, *bucket);
                }
            }
            Op::Retry(row, due, bucket) => {
                if let Some(mut timer) = self.take_near(row) {
                    timer.failures += 1;
                    self.shift(number(row.id.get()), timer, *due, *bucket);
                }
            }
            Op::Bury { row, at, error } => {
                if let Some(timer) = self.take_near(row) {
                    self.forget(row, &timer);
                    let dead = Dead {
                        due: timer.due,
                        handler: timer.handler,
                        failures: timer.failures,
                        has_moved: timer.has_moved,
                        key: timer.key,
                        payload: timer.payload,
                        at: at.as_millis(),
                        error: error.to_string(),
                        starts: timer.starts,
                    };
                    self.dead.insert(number(row.id.get()), dead);
                }
            }
            Op::Redrive(id, due, bucket) => {
                if let Some(dead) = self.dead.remove(&number(id.get())) {
                    let timer = Timer {
                        level: 0,
                        bucket: 0,
                        due: dead.due,
                        handler: dead.handler,
                        failures: 0,
                        has_moved: true,
                        key: None,
                        payload: dead.payload,
                        starts: 0,
                    };
                    self.shift(number(id.get()), timer, *due, *bucket);
                }
            }
            Op::Discard(id) => drop(self.dead.remove(&number(id.get()))),
            Op::Cascade { bucket, now, limit } => self.cascade(*bucket, now.as_millis(), *limit),
            Op::Archive(row, at) => {
                if self.take_near(row).is_some() {
                    // It keeps its key.
                    self.moved.remove(&number(row.id.get()));
                    self.archive.add(row, *at);
                }
            }
            Op::Expire {
                handler,
                before,
                limit,
            } => self.expire(handler, *before, *limit),
            Op::Start(row) => {
                if self.is_near(row)
                    && let Some(timer) = self.timers.get_mut(&number(row.id.get()))
                {
                    timer.starts += 1;
                }
            }
            Op::Set(name, Some(value)) => {
                self.settings.insert(name.to_string(), value.to_vec());
            }
            Op::Set(name, None) => drop(self.settings.remove(&**name)),
            Op::Reply(command, answer) => {
                if let Some(command) = self.commands.get_mut(&number(*command)) {
                    command.answer = Some(answer.to_string());
                }
            }
            Op::All(steps) => steps.iter().for_each(|step| self.step(step)),
        }
    }

    /// All steps of the commit were done.
    pub(crate) fn end_commit(&mut self) {
        self.archive.end_commit();
    }

    /// The file is opened once more.
    pub(crate) fn begin(&mut self) {
        self.epoch += 1;
        // A process that has ended answers nothing.
        self.commands
            .retain(|_, command| !command.is_taken || command.answer.is_some());
    }

    /// The store has taken all commands.
    pub(crate) fn take_commands(&mut self) {
        let open = self.commands.values_mut();
        for command in open.filter(|command| command.answer.is_none()) {
            command.is_taken = true;
        }
    }

    fn expire(&mut self, handler: &str, before: i64, limit: usize) {
        for archived in self.archive.expire(handler, before, limit) {
            if let Some(key) = archived.key {
                let key = (handler.to_owned(), key);
                if self
                    .keys
                    .get(&key)
                    .is_some_and(|(id, _)| *id == archived.id)
                {
                    self.keys.remove(&key);
                }
            }
        }
    }

    fn is_near(&self, row: &Row) -> bool {
        let timer = self.timers.get(&number(row.id.get()));
        let second = row.due.as_millis().div_euclid(1_000);
        timer.is_some_and(|timer| (timer.level, timer.bucket) == (0, second))
    }

    fn insert(&mut self, row: &Row, bucket: Bucket) {
        let id = number(row.id.get());
        let handler = row.handler.to_string();
        if let Some(key) = &row.key {
            let key = (handler.clone(), key.to_vec());
            if self.keys.get(&key).is_some_and(|(other, _)| *other != id) {
                return;
            }
            self.keys.insert(key, (id, row.due.as_millis()));
        }
        self.handlers.insert(handler.clone());
        let timer = Timer {
            level: i64::from(bucket.level.number()),
            bucket: bucket.number,
            due: row.due.as_millis(),
            handler,
            failures: i64::from(row.failures),
            has_moved: row.has_moved,
            key: row.key.as_deref().map(<[u8]>::to_vec),
            payload: row.payload.to_vec(),
            starts: i64::try_from(row.starts).unwrap_or(i64::MAX),
        };
        self.timers.insert(id, timer);
    }

    fn take_near(&mut self, row: &Row) -> Option<Timer> {
        match self.is_near(row) {
            true => self.timers.remove(&number(row.id.get())),
            false => None,
        }
    }

    fn take(&mut self, handle: &Handle) -> Option<Timer> {
        self.timers.remove(&number(handle.id.get()))
    }

    fn forget(&mut self, row: &Row, timer: &Timer) {
        self.forget_id(number(row.id.get()), timer);
    }

    fn forget_id(&mut self, id: i64, timer: &Timer) {
        self.moved.remove(&id);
        if let Some(key) = &timer.key {
            self.keys.remove(&(timer.handler.clone(), key.clone()));
        }
    }

    fn shift(&mut self, id: i64, mut timer: Timer, due: Due, bucket: Bucket) {
        timer.due = due.as_millis();
        timer.has_moved = true;
        timer.starts = 0;
        timer.level = i64::from(bucket.level.number());
        timer.bucket = bucket.number;
        self.moved.insert(id, timer.due);
        self.timers.insert(id, timer);
    }

    fn cascade(&mut self, bucket: Bucket, now: i64, limit: PageLimit) {
        let level = usize::from(bucket.level.number());
        let is_in = |timer: &Timer| timer.level == level as i64 && timer.bucket == bucket.number;
        let page = self.timers.values_mut().filter(|timer| is_in(timer));
        let mut bytes = 0;
        for timer in page.take(limit.rows) {
            if bytes >= limit.bytes {
                break;
            }
            bytes += timer.payload.len() + timer.key.as_ref().map_or(0, Vec::len);
            let finer = (1..level).rev().find(|finer| {
                let (length, lead) = LEVELS[*finer];
                timer.due.div_euclid(length) * length - lead > now
            });
            let finer = finer.unwrap_or(0);
            timer.level = finer as i64;
            timer.bucket = timer.due.div_euclid(LEVELS[finer].0);
        }
    }

    /// Reads a file. `None` if it has no tables.
    pub(crate) fn read(connection: &Connection) -> Result<Option<Tables>, String> {
        let ask = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        // SQLite has some of its own.
        let tables =
            "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
        let count = ask(tables).map_err(words)?;
        let version = ask("PRAGMA user_version").map_err(words)?;
        let application = ask("PRAGMA application_id").map_err(words)?;
        let check = "PRAGMA integrity_check";
        let check: String = connection
            .query_row(check, [], |row| row.get(0))
            .map_err(words)?;
        if check != "ok" {
            return Err(format!("the integrity check says: {check}"));
        }
        match (count, version, application) {
            (0, 0, 0) => return Ok(None),
            (12, 2, 0x5757_746d) => {}
            other => return Err(format!("half of the tables are there: {other:?}")),
        }
        Tables::read_all(connection).map(Some).map_err(words)
    }

    fn read_all(connection: &Connection) -> rusqlite::Result<Tables> {
        let mut tables = Tables {
            epoch: connection.query_row(EPOCH, [], |row| row.get(0))?,
            ..Tables::default()
        };
        let mut handlers = BTreeMap::new();
        each(connection, "SELECT number, name FROM handlers", |row| {
            handlers.insert(row.get::<_, i64>(0)?, row.get::<_, String>(1)?);
            Ok(())
        })?;
        tables.handlers = handlers.values().cloned().collect();
        let name = |row: &SqlRow<'_>, column| -> rusqlite::Result<String> {
            let number: i64 = row.get(column)?;
            let name = handlers.get(&number).cloned();
            Ok(name.unwrap_or_else(|| format!("the handler {number} is not there")))
        };
        each(connection, "SELECT * FROM timers", |row| {
            let handler = match row.get::<_, i64>(0)? {
                0 => 1,
                _ => 7,
            };
            let timer = Timer {
                level: row.get(0)?,
                bucket: row.get(2)?,
                due: row.get(4)?,
                handler: name(row, handler)?,
                failures: row.get(5)?,
                has_moved: row.get(6)?,
                key: row.get(8)?,
                payload: row.get(9)?,
                starts: row.get(10)?,
            };
            if tables.timers.insert(row.get(3)?, timer).is_some() {
                // It lies in two buckets: no model has that.
                tables.epoch = -1;
            }
            Ok(())
        })?;
        let mut names = keys::read(connection)?;
        for (number, handler) in &handlers {
            for key in 0..=u8::MAX {
                if let Some(holder) = names.take(*number, &[key]) {
                    tables.keys.insert((handler.clone(), vec![key]), holder);
                }
            }
        }
        if names.left() > 0 {
            // A key that no life has.
            tables.epoch = -1;
        }
        each(connection, "SELECT id, due FROM moved", |row| {
            tables.moved.insert(row.get(0)?, row.get(1)?);
            Ok(())
        })?;
        each(connection, "SELECT * FROM dead", |row| {
            let dead = Dead {
                handler: name(row, 1)?,
                due: row.get(2)?,
                failures: row.get(3)?,
                has_moved: row.get(4)?,
                key: row.get(5)?,
                payload: row.get(6)?,
                at: row.get(7)?,
                error: row.get(8)?,
                starts: row.get(9)?,
            };
            tables.dead.insert(row.get(0)?, dead);
            Ok(())
        })?;
        tables.archive = Archive::read(connection, &handlers)?;
        each(connection, "SELECT name, value FROM settings", |row| {
            tables.settings.insert(row.get(0)?, row.get(1)?);
            Ok(())
        })?;
        let sql = "SELECT number, body, is_taken, answer FROM commands";
        each(connection, sql, |row| {
            let command = Command {
                body: row.get(1)?,
                is_taken: row.get(2)?,
                answer: row.get(3)?,
            };
            tables.commands.insert(row.get(0)?, command);
            Ok(())
        })?;
        Ok(tables)
    }

    /// The bucket of a timer.
    pub(crate) fn bucket(timer: &Timer) -> Bucket {
        let level = match timer.level {
            0 => Level::Second,
            1 => Level::Minute,
            2 => Level::Hour,
            _ => Level::Day,
        };
        Bucket {
            level,
            number: timer.bucket,
        }
    }

    /// In what it differs from another one.
    pub(crate) fn differs(&self, other: &Tables) -> String {
        let (mut here, mut there, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        let ids: BTreeSet<_> = self.timers.keys().chain(other.timers.keys()).collect();
        for id in ids {
            match (self.timers.get(id), other.timers.get(id)) {
                (Some(_), None) => here.push(id),
                (None, Some(_)) => there.push(id),
                (one, two) if one != two => changed.push(id),
                _ => {}
            }
        }
        let (here, there, changed) = (some(&here), some(&there), some(&changed));
        format!(
            "epoch {} and {}; timers missing: {there}; too many: {here}; changed: {changed}; keys {}, moved {}, dead letters {}, archive {}, settings {}, commands {}, handlers {}",
            self.epoch,
            other.epoch,
            same(&self.keys, &other.keys),
            same(&self.moved, &other.moved),
            same(&self.dead, &other.dead),
            same(&self.archive, &other.archive),
            same(&self.settings, &other.settings),
            same(&self.commands, &other.commands),
            same(&self.handlers, &other.handlers),
        )
    }
}

fn same<T: PartialEq>(one: &T, two: &T) -> &'static str {
    match one == two {
        true => "the same",
        false => "changed",
    }
}

/// How many timers, and the first of them.
fn some(ids: &[&i64]) -> String {
    match ids.first() {
        Some(first) => format!("{}, the first is {first:x}", ids.len()),
        None => "none".to_owned(),
    }
}

fn number(id: u64) -> i64 {
    id.cast_signed()
}

fn words(error: rusqlite::Error) -> String {
    error.to_string()
}
