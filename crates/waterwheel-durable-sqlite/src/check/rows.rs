//! Which columns does a table have, and what must be true of a row?
//!
//! # Notes of timers that are gone
//!
//! A note is checked by its id: most belong to timers that were seen when the table `timers` was read. The others belong to timers that were inserted or moved
//! meanwhile, which are looked up in the same transaction, or to one that was archived behind the check. The archive is therefore read once more before a key
//! is reported as lost.

use std::collections::BTreeMap;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};
use waterwheel_durable_core::store::{Bucket, Command, DeadCount, Due, Id, Level, PendingCount};

use super::finding::{
    Finding, KEY_IS_FREE, KEY_IS_TAKEN, MISCOUNTED, NOT_FOUND, NOT_TAGGED, ROW, STRAY, USELESS,
};
use super::{Check, Known, OpenError};
use crate::archive;
use crate::error::{describe_type, ordinal, times};
use crate::lock::{self, Holder};
use crate::lsm::{Holder as KeyHolder, MAX_BITS, Name, is_filter, read_entries};
use crate::read::MOVED;

/// A table, its columns, and how many of them form its key; these come first.
pub(super) struct Table {
    pub(super) name: &'static str,
    columns: &'static [&'static str],
    keys: usize,
}

/// The tables that notes are compared with come before the notes.
pub(super) const TABLES: [Table; 14] = [
    table("handlers", &["number", "name"], 1),
    table(
        "timers",
        &[
            "level",
            "handler",
            "bucket",
            "id",
            "due",
            "failures",
            "first_due",
            "far_handler",
            "key",
            "tag",
            "retries",
            "payload",
            "starts",
        ],
        4,
    ),
    ARCHIVE,
    table(
        "dead",
        &[
            "id",
            "handler",
            "due",
            "failures",
            "first_due",
            "key",
            "tag",
            "retries",
            "payload",
            "at",
            "error",
            "starts",
        ],
        1,
    ),
    table("moved", &["id", "due"], 1),
    table("tags", &["tag", "id", "handler", "due"], 2),
    table(
        "pending_counts",
        &["level", "bucket", "handler", "count"],
        3,
    ),
    table("dead_counts", &["handler", "error", "count"], 2),
    table("settings", &["name", "value"], 1),
    table(
        "commands",
        &["number", "body", "until", "is_taken", "answer"],
        1,
    ),
    table("key_changes", &["number", "entries"], 1),
    table(
        "key_runs",
        &[
            "number",
            "age",
            "bits",
            "entries",
            "freed",
            "merged_into",
            "done",
        ],
        1,
    ),
    table("key_chunks", &["number", "entries"], 1),
    table("key_filters", &["number", "filter"], 1),
];

pub(super) const ARCHIVE: Table = table(
    "archive",
    &[
        "handler", "day", "block", "count", "first_id", "last_id", "entries",
    ],
    3,
);

const fn table(name: &'static str, columns: &'static [&'static str], keys: usize) -> Table {
    Table {
        name,
        columns,
        keys,
    }
}

impl Table {
    /// SQL for the last key of a table whose key is a single column.
    pub(super) fn last_sql(&self) -> Option<String> {
        let Table { name, columns, .. } = self;
        (self.keys == 1).then(|| format!("SELECT max({}) FROM {name}", columns[0]))
    }

    pub(super) fn sql(&self, is_after: bool) -> String {
        let Table {
            name,
            columns,
            keys,
        } = self;
        let key = columns[..*keys].join(", ");
        let marks = vec!["?"; *keys].join(", ");
        let after = match is_after {
            true => format!("WHERE ({key}) > ({marks})"),
            false => String::new(),
        };
        format!(
            "SELECT {} FROM {name} {after} ORDER BY {key}",
            columns.join(", ")
        )
    }
}

/// A row and its problems.
pub(super) struct Cells<'a> {
    pub(super) connection: &'a Connection,
    table: &'a Table,
    row: &'a Row<'a>,
    timer: Option<Id>,
    wrong: Vec<(String, &'static str)>,
}

impl<'a> Cells<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        table: &'a Table,
        row: &'a Row<'a>,
    ) -> rusqlite::Result<Cells<'a>> {
        Ok(Cells {
            connection,
            table,
            row,
            timer: None,
            wrong: Vec::new(),
        })
    }

    pub(super) fn key(&self) -> rusqlite::Result<Vec<Value>> {
        (0..self.table.keys).map(|at| self.row.get(at)).collect()
    }

    /// The row as an SQL condition.
    pub(super) fn name(&self) -> String {
        let columns = self.table.columns[..self.table.keys].iter().enumerate();
        let parts = columns.map(|(at, column)| {
            let value = match self.row.get_ref(at) {
                Ok(ValueRef::Integer(value)) => value.to_string(),
                Ok(ValueRef::Text(text)) => format!("'{}'", String::from_utf8_lossy(text)),
                Ok(other) => format!("({})", describe_type(other.data_type())),
                Err(_) => "?".to_owned(),
            };
            format!("{column} = {value}")
        });
        parts.collect::<Vec<_>>().join(" AND ")
    }

    pub(super) fn is_wrong(&mut self, what: impl Into<String>, cure: &'static str) {
        self.wrong.push((what.into(), cure));
    }

    pub(super) fn hand_over(&mut self, found: &mut dyn FnMut(Finding)) {
        for (what, cure) in std::mem::take(&mut self.wrong) {
            found(Finding {
                table: Some(self.table.name.to_owned()),
                row: Some(self.name()),
                timer: self.timer,
                what,
                cure,
            });
        }
    }

    pub(super) fn forget(&mut self) {
        self.wrong.clear();
    }

    fn value(&self, column: &str) -> ValueRef<'a> {
        let at = self.table.columns.iter().position(|it| *it == column);
        at.and_then(|at| self.row.get_ref(at).ok())
            .unwrap_or(ValueRef::Null)
    }

    fn is_no(&mut self, column: &str, wanted: &str) {
        let found = describe_type(self.value(column).data_type());
        self.is_wrong(
            format!("the column `{column}` has {found} instead of {wanted}"),
            ROW,
        );
    }

    pub(super) fn integer(&mut self, column: &str) -> Option<i64> {
        match self.value(column) {
            ValueRef::Integer(value) => Some(value),
            _ => {
                self.is_no(column, "a whole number");
                None
            }
        }
    }

    fn integer_or_null(&mut self, column: &str) -> Option<i64> {
        match self.value(column) {
            ValueRef::Null => None,
            _ => self.integer(column),
        }
    }

    /// A number that is neither negative nor too large.
    fn count(&mut self, column: &str, limit: i64) -> Option<i64> {
        let value = self.integer(column)?;
        if !(0..=limit).contains(&value) {
            self.is_wrong(
                format!("the column `{column}` has {value}, which is out of range"),
                ROW,
            );
            return None;
        }
        Some(value)
    }

    pub(super) fn bytes(&mut self, column: &str) -> Option<&'a [u8]> {
        match self.value(column) {
            ValueRef::Blob(value) => Some(value),
            _ => {
                self.is_no(column, "bytes");
                None
            }
        }
    }

    fn bytes_or_null(&mut self, column: &str) -> Option<&'a [u8]> {
        match self.value(column) {
            ValueRef::Null => None,
            _ => self.bytes(column),
        }
    }

    fn text(&mut self, column: &str) -> Option<&'a str> {
        let ValueRef::Text(value) = self.value(column) else {
            self.is_no(column, "text");
            return None;
        };
        let text = std::str::from_utf8(value).ok();
        if text.is_none() {
            self.is_wrong(
                format!("the column `{column}` has text that is not UTF-8"),
                ROW,
            );
        }
        text
    }

    fn text_or_null(&mut self, column: &str) -> Option<&'a str> {
        match self.value(column) {
            ValueRef::Null => None,
            _ => self.text(column),
        }
    }

    /// The id of a timer. An id of a later opening than the file has had might be assigned again.
    pub(super) fn id(&mut self, known: &Known) -> Option<i64> {
        let stored = self.count("id", i64::MAX)?;
        let id = Id::from_stored(stored.unsigned_abs());
        self.timer = Some(id);
        if let (Some(of), Some(epoch)) = (id.epoch(), known.epoch)
            && of > epoch
        {
            self.is_wrong(
                format!(
                    "its id was assigned after the file was opened for the {} time, but the file has been opened {}: a new timer may get the same id",
                    ordinal(of),
                    times(epoch)
                ),
                ROW,
            );
        }
        Some(stored)
    }

    fn handler(&mut self, column: &str, known: &Known) -> Option<i64> {
        let number = self.integer(column)?;
        match known.handlers {
            Some(last) if !(1..=last).contains(&number) => {
                self.is_wrong(format!("the table `handlers` has no number {number}"), ROW);
                None
            }
            _ => Some(number),
        }
    }

    /// The columns that a timer and a dead letter share.
    fn common(&mut self) {
        self.count("failures", i64::from(u32::MAX));
        self.integer_or_null("first_due");
        self.count("starts", i64::MAX);
        self.bytes("payload");
        self.bytes_or_null("retries");
    }
}

impl Check<'_> {
    pub(super) fn row(&mut self, table: &Table, cells: &mut Cells<'_>) -> rusqlite::Result<()> {
        let Some(known) = self.known.take() else {
            return Ok(());
        };
        let looked = match table.name {
            "timers" => self.timer(&known, cells),
            "archive" => self.archived(&known, cells),
            "moved" => self.moved(&known, cells).map(|()| None),
            "tags" => self.tagged(&known, cells).map(|()| None),
            "key_changes" | "key_runs" | "key_chunks" | "key_filters" => {
                self.known = Some(known);
                return self.index(table.name, cells);
            }
            _ => {
                match table.name {
                    "handlers" => handler(cells),
                    "dead" => self.dead(&known, cells),
                    "pending_counts" => self.pending_count(cells),
                    "dead_counts" => self.dead_count(cells),
                    "settings" => {
                        cells.text("name");
                        cells.bytes("value");
                    }
                    _ => command(cells),
                }
                Ok(None)
            }
        };
        self.known = Some(known);
        // The key is looked up in the index last, because that may have to be read for it.
        if let Some(keyed) = looked? {
            self.look_up(&keyed, cells)?;
        }
        Ok(())
    }

    fn timer(
        &mut self,
        known: &Known,
        cells: &mut Cells<'_>,
    ) -> rusqlite::Result<Option<Vec<Keyed>>> {
        cells.common();
        let id = cells.id(known);
        let due = cells.integer("due").map(Due::from_millis);
        let key = cells.bytes_or_null("key");
        let level = cells.integer("level");
        let levels = [Level::Second].into_iter().chain(Level::CASCADING);
        let level = level.and_then(|number| {
            let found = levels
                .into_iter()
                .find(|it| i64::from(it.number()) == number);
            if found.is_none() {
                cells.is_wrong(format!("there is no level {number}"), ROW);
            }
            found
        });
        let handler = match level {
            None => None,
            Some(Level::Second) => {
                if cells.value("far_handler") != ValueRef::Null {
                    cells.is_wrong(
                        "the column `far_handler` has a value, although the level is 0",
                        ROW,
                    );
                }
                cells.handler("handler", known)
            }
            Some(_) => {
                if cells.value("handler") != ValueRef::Integer(0) {
                    cells.is_wrong(
                        "the column `handler` is not 0, although the level is not 0",
                        ROW,
                    );
                }
                cells.handler("far_handler", known)
            }
        };
        if let (Some(level), Some(due), Some(bucket)) = (level, due, cells.integer("bucket")) {
            let right = level.bucket(due).number;
            if right != bucket {
                cells.is_wrong(
                    format!(
                        "it is in bucket {bucket}, but by its due time {} it belongs to {right}",
                        due.as_millis()
                    ),
                    ROW,
                );
            }
        }
        if let (Some(level), Some(number), Some(handler)) =
            (level, cells.integer("bucket"), handler)
        {
            let bucket = PendingCount::bucket_of(Bucket { level, number });
            let at = (bucket.level.number().into(), bucket.number, handler);
            *self.counted.pending.entry(at).or_insert(0) += 1;
        }
        let (Some(id), Some(due)) = (id, due) else {
            return Ok(None);
        };
        if let Some(tag) = cells.text_or_null("tag") {
            self.orphans.tagged.push(id);
            let noted = "SELECT 1 FROM tags WHERE tag = ?1 AND id = ?2";
            if !cells.connection.prepare_cached(noted)?.exists((tag, id))? {
                cells.is_wrong("the table `tags` does not have its tag", NOT_TAGGED);
            }
        }
        let mut moved = cells.connection.prepare_cached(MOVED)?;
        let moved: Option<Value> = moved.query_row([id], |row| row.get(0)).optional()?;
        match (cells.value("first_due"), moved) {
            (ValueRef::Integer(_), Some(to)) => {
                self.orphans.moved.push(id);
                if to != Value::Integer(due.as_millis()) {
                    cells.is_wrong("the table `moved` has another due time for it", NOT_FOUND);
                }
            }
            (ValueRef::Integer(_), None) => {
                cells.is_wrong(
                    "it has moved, but the table `moved` does not have it",
                    NOT_FOUND,
                );
            }
            (ValueRef::Null, Some(_)) => {
                self.orphans.moved.push(id);
                cells.is_wrong("it has not moved, but the table `moved` has it", NOT_FOUND);
            }
            _ => {}
        }
        let keyed = handler.zip(key).map(|(handler, key)| Keyed {
            handler,
            key: key.to_vec(),
            id,
        });
        Ok(keyed.map(|keyed| vec![keyed]))
    }

    fn archived(
        &mut self,
        known: &Known,
        cells: &mut Cells<'_>,
    ) -> rusqlite::Result<Option<Vec<Keyed>>> {
        let handler = cells.handler("handler", known);
        let day = cells.integer("day");
        cells.count("block", i64::from(u32::MAX));
        let count = cells.count("count", i64::from(u32::MAX));
        let ids = (cells.integer("first_id"), cells.integer("last_id"));
        let Some(bytes) = cells.bytes("entries") else {
            return Ok(None);
        };
        let Some(all) = archive::entries(bytes) else {
            cells.is_wrong("the column `entries` cannot be read", ROW);
            return Ok(None);
        };
        let stored = all
            .iter()
            .map(|it| i64::try_from(it.id.get()).unwrap_or(i64::MAX));
        if count.is_some_and(|count| count.unsigned_abs() != all.len() as u64) {
            cells.is_wrong("the column `count` is not the number of its entries", ROW);
        }
        if (ids.0.is_some() && ids.0 != stored.clone().min())
            || (ids.1.is_some() && ids.1 != stored.clone().max())
        {
            cells.is_wrong(
                "the columns `first_id` and `last_id` do not match its entries",
                ROW,
            );
        }
        if day.is_some_and(|day| all.iter().any(|it| it.at.day() != day)) {
            cells.is_wrong("it has an entry of another day", ROW);
        }
        let keyed = all.iter().zip(stored).filter_map(|(it, id)| {
            Some(Keyed {
                handler: handler?,
                key: it.key.as_ref()?.to_vec(),
                id,
            })
        });
        Ok(Some(keyed.collect()))
    }

    fn dead(&mut self, known: &Known, cells: &mut Cells<'_>) {
        cells.common();
        cells.id(known);
        let handler = cells.handler("handler", known);
        cells.integer("due");
        cells.bytes_or_null("key");
        cells.text_or_null("tag");
        cells.integer("at");
        if let (Some(handler), Some(error)) = (handler, cells.text("error")) {
            let kind = DeadCount::kind(error).to_owned();
            *self.counted.dead.entry((handler, kind)).or_insert(0) += 1;
        }
    }

    fn pending_count(&mut self, cells: &mut Cells<'_>) {
        let key = ["level", "bucket", "handler"].map(|column| cells.integer(column));
        if let ([Some(level), Some(bucket), Some(handler)], Some(count)) =
            (key, cells.count("count", i64::MAX))
        {
            let counted = self.counted.pending.remove(&(level, bucket, handler));
            self.compare(count, counted, cells);
        }
    }

    fn dead_count(&mut self, cells: &mut Cells<'_>) {
        if let (Some(handler), Some(error), Some(count)) = (
            cells.integer("handler"),
            cells.text("error"),
            cells.count("count", i64::MAX),
        ) {
            let counted = self.counted.dead.remove(&(handler, error.to_owned()));
            self.compare(count, counted, cells);
        }
    }

    /// Compares a count with the number of rows that were read.
    fn compare(&self, count: i64, counted: Option<i64>, cells: &mut Cells<'_>) {
        let counted = counted.unwrap_or(0);
        if count != counted && self.is_counted() {
            let what = format!("the column `count` has {count}, but {counted} were found");
            cells.is_wrong(what, MISCOUNTED);
        }
    }

    /// Whether all rows were read that are counted, and no process may have changed them meanwhile.
    fn is_counted(&self) -> bool {
        let is_whole = !self.counted.is_partial && !self.orphans.is_partial;
        is_whole && !self.is_beside && lock::inspect(&self.path) == Holder::None
    }

    /// Reports what the tables of counts do not have.
    pub(super) fn look_for_missing_counts(&mut self) {
        if !self.is_counted() {
            return;
        }
        let counted = std::mem::take(&mut self.counted);
        let pending = counted.pending.into_iter();
        let pending = pending.map(|((level, bucket, handler), count)| {
            let row = format!("level = {level} AND bucket = {bucket} AND handler = {handler}");
            ("pending_counts", row, count)
        });
        let dead = counted.dead.into_iter();
        let dead = dead.map(|((handler, error), count)| {
            let row = format!("handler = {handler} AND error = '{error}'");
            ("dead_counts", row, count)
        });
        for (table, row, count) in pending.chain(dead) {
            (self.found)(Finding {
                table: Some(table.to_owned()),
                row: Some(row),
                timer: None,
                what: format!("the count is missing, but {count} were found"),
                cure: MISCOUNTED,
            });
        }
    }

    /// Checks that the index has the keys of these timers.
    fn look_up(&mut self, all: &[Keyed], cells: &mut Cells<'_>) -> rusqlite::Result<()> {
        for Keyed { handler, key, id } in all {
            self.orphans.keyed.push(*id);
            let Some(keys) = self.keys(cells.connection) else {
                return Ok(());
            };
            // The check of the index reports a damaged chunk.
            let found = match keys.find(cells.connection, keys.name(*handler, key)) {
                Err(error) if error.sqlite_error_code().is_none() => continue,
                found => found?,
            };
            let what = match found {
                Some(KeyHolder { id: other, .. }) if other == *id => continue,
                Some(KeyHolder { id, .. }) => {
                    let other = Id::from_stored(id.unsigned_abs());
                    format!("in the index of the keys, its key belongs to the timer {other}")
                }
                None => "its key is not in the index of the keys".to_owned(),
            };
            cells.is_wrong(what, KEY_IS_FREE);
        }
        Ok(())
    }
}

/// A timer with a key.
struct Keyed {
    handler: i64,
    key: Vec<u8>,
    id: i64,
}

fn handler(cells: &mut Cells<'_>) {
    cells.text("name");
    // The numbers start at 1.
    let Some(number) = cells.integer("number").filter(|number| *number != 1) else {
        return;
    };
    let sql = "SELECT 1 FROM handlers WHERE number = ?1 - 1";
    let before = cells.connection.prepare_cached(sql);
    let is_there = before.and_then(|mut it| it.exists([number]));
    if !is_there.unwrap_or(true) {
        cells.is_wrong(format!("the row {} before it is missing", number - 1), ROW);
    }
}

fn command(cells: &mut Cells<'_>) {
    let body = cells.text("body");
    cells.integer("until");
    cells.count("is_taken", 1);
    match cells.value("answer") {
        ValueRef::Null if body.is_some_and(|body| body.parse::<Command>().is_err()) => {
            cells.is_wrong("its `body` is not a request that this version knows", STRAY);
        }
        ValueRef::Null => {}
        _ => drop(cells.text("answer")),
    }
}

pub(super) fn run(cells: &mut Cells<'_>) {
    cells.count("number", i64::from(i32::MAX));
    cells.integer("age");
    cells.integer("entries");
    cells.integer("freed");
    let bits = cells.count("bits", i64::from(MAX_BITS));
    let done = cells.count("done", i64::from(u32::MAX));
    if let (Some(bits), Some(done)) = (bits, done)
        && done > 1 << bits
    {
        cells.is_wrong("the column `done` counts more chunks than the run has", ROW);
    }
    if let Some(into) = cells.integer_or_null("merged_into") {
        let sql = "SELECT 1 FROM key_runs WHERE number = ?1";
        let there = cells.connection.prepare_cached(sql);
        if !there.and_then(|mut it| it.exists([into])).unwrap_or(true) {
            cells.is_wrong(format!("it is merged into {into}, which is missing"), ROW);
        }
    }
}

/// The number of rows that were read, as far as they have not been compared with the tables of counts.
#[derive(Default)]
pub(super) struct Counted {
    /// By level, bucket and handler.
    pending: BTreeMap<(i64, i64, i64), i64>,
    /// By handler and kind of error.
    dead: BTreeMap<(i64, String), i64>,
    /// Whether the dead letters could not be read to their end.
    pub(super) is_partial: bool,
}

/// The timers seen so far, by their ids.
#[derive(Default)]
pub(super) struct Orphans {
    /// The timers with a key.
    pub(super) keyed: Vec<i64>,
    /// The timers in the table `moved`.
    pub(super) moved: Vec<i64>,
    /// The timers with a tag.
    tagged: Vec<i64>,
    /// Whether all are sorted.
    is_sorted: bool,
    /// Whether a table of timers could not be read to its end.
    pub(super) is_partial: bool,
    /// The keys whose timers were not found.
    lost: Vec<Lost>,
}

struct Lost {
    name: Name,
    holder: KeyHolder,
    table: &'static str,
    row: String,
}

impl Orphans {
    fn sort(&mut self) {
        if !self.is_sorted {
            self.keyed.sort_unstable();
            self.moved.sort_unstable();
            self.tagged.sort_unstable();
            self.is_sorted = true;
        }
    }
}

impl Check<'_> {
    /// Checks a row of the table `moved`.
    pub(super) fn moved(&mut self, known: &Known, cells: &mut Cells<'_>) -> rusqlite::Result<()> {
        self.orphans.sort();
        let (Some(id), Some(due)) = (cells.id(known), cells.integer("due")) else {
            return Ok(());
        };
        let is_known = self.orphans.is_partial || self.orphans.moved.binary_search(&id).is_ok();
        if !is_known && !is_there(cells.connection, id, due)? {
            cells.is_wrong("there is no such timer", USELESS);
        }
        Ok(())
    }

    /// Checks a row of the table `tags`.
    fn tagged(&mut self, known: &Known, cells: &mut Cells<'_>) -> rusqlite::Result<()> {
        self.orphans.sort();
        cells.text("tag");
        cells.handler("handler", known);
        let (Some(id), Some(due)) = (cells.id(known), cells.integer("due")) else {
            return Ok(());
        };
        let is_known = self.orphans.is_partial || self.orphans.tagged.binary_search(&id).is_ok();
        if !is_known && !is_there(cells.connection, id, due)? {
            cells.is_wrong("there is no such timer", USELESS);
        }
        Ok(())
    }

    /// Checks a row of the index of the keys.
    pub(super) fn index(
        &mut self,
        table: &'static str,
        cells: &mut Cells<'_>,
    ) -> rusqlite::Result<()> {
        self.orphans.sort();
        let connection = cells.connection;
        if table == "key_runs" {
            run(cells);
            return Ok(());
        }
        let number = cells.integer("number");
        let column = match table {
            "key_filters" => "filter",
            _ => "entries",
        };
        let (Some(number), Some(bytes)) = (number, cells.bytes(column)) else {
            return Ok(());
        };
        if table == "key_filters" {
            let sql = "SELECT 1 FROM key_chunks WHERE number = ?1";
            if !connection.prepare_cached(sql)?.exists([number])? {
                cells.is_wrong("it is the filter of a chunk that does not exist", ROW);
            }
            if !is_filter(bytes) {
                cells.is_wrong("it is not a valid filter", ROW);
            }
            return Ok(());
        }
        let Ok(entries) = read_entries(bytes) else {
            cells.is_wrong("its entries cannot be read", ROW);
            return Ok(());
        };
        let Some(keys) = self.keys(connection) else {
            return Ok(());
        };
        if table == "key_chunks"
            && let Err(what) = keys.fits(number, &entries)
        {
            cells.is_wrong(what, ROW);
            return Ok(());
        }
        let mut asked = Vec::new();
        for (name, holder) in entries {
            // If a key has two entries, the later one is valid.
            if holder.is_some() && keys.find(connection, name)? == holder {
                asked.extend(holder.map(|holder| (name, holder)));
            }
        }
        for (name, holder) in asked {
            let is_known = self.orphans.keyed.binary_search(&holder.id).is_ok();
            if !is_known && !is_there(connection, holder.id, holder.due)? {
                let row = cells.name();
                self.orphans.lost.push(Lost {
                    name,
                    holder,
                    table,
                    row,
                });
            }
        }
        Ok(())
    }

    /// Reports the keys that belong to no timer.
    pub(super) fn look_for_lost_keys(&mut self) -> Result<(), OpenError> {
        let lost = std::mem::take(&mut self.orphans.lost);
        if lost.is_empty() || self.orphans.is_partial {
            return Ok(());
        }
        let mut archived = Vec::new();
        let rows = self.rows;
        self.table(&ARCHIVE, &mut |_, cells| {
            let all = cells.bytes("entries").and_then(archive::entries);
            let ids = all.into_iter().flatten();
            archived.extend(ids.map(|it| i64::try_from(it.id.get()).unwrap_or(i64::MAX)));
            // The row was already checked.
            cells.forget();
            Ok(())
        })?;
        self.rows = rows;
        archived.sort_unstable();
        let connection = self.connection;
        let transaction = connection.unchecked_transaction().map_err(OpenError::of)?;
        let known = self.know(&transaction);
        self.of_table(None, known)?;
        for Lost {
            name,
            holder,
            table,
            row,
        } in lost
        {
            let Some(keys) = self.keys(connection) else {
                return Ok(());
            };
            let found = keys.find(connection, name).and_then(|found| {
                let is_held = found == Some(holder);
                Ok(is_held && !is_there(connection, holder.id, holder.due)?)
            });
            let is_lost = self.of_table(Some(table), found)?.unwrap_or(false);
            if is_lost && archived.binary_search(&holder.id).is_err() {
                (self.found)(Finding {
                    table: Some(table.to_owned()),
                    row: Some(row),
                    timer: Some(Id::from_stored(holder.id.unsigned_abs())),
                    what: "it has the key of this timer, which does not exist".to_owned(),
                    cure: KEY_IS_TAKEN,
                });
            }
        }
        Ok(())
    }
}

/// Whether there is a pending timer with this id and original due time.
fn is_there(connection: &Connection, id: i64, due: i64) -> rusqlite::Result<bool> {
    let mut moved = connection.prepare_cached(MOVED)?;
    let moved: Option<Value> = moved.query_row([id], |row| row.get(0)).optional()?;
    let due = match moved {
        Some(Value::Integer(due)) => due,
        _ => due,
    };
    let due = Due::from_millis(due);
    let in_second = "SELECT 1 FROM timers
        WHERE level = 0 AND handler IN (SELECT number FROM handlers) AND bucket = ?1 AND id = ?2";
    if connection
        .prepare_cached(in_second)?
        .exists((due.second(), id))?
    {
        return Ok(true);
    }
    let in_bucket =
        "SELECT 1 FROM timers WHERE level = ?1 AND handler = 0 AND bucket = ?2 AND id = ?3";
    let mut in_bucket = connection.prepare_cached(in_bucket)?;
    for level in Level::CASCADING {
        if in_bucket.exists((level.number(), level.bucket(due).number, id))? {
            return Ok(true);
        }
    }
    Ok(false)
}
