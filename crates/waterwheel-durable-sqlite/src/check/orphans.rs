//! Which notes are of timers that are gone?
//!
//! A note is looked at by its id: most are of timers that were seen as the table `timers` was read. The others are of timers that were inserted or moved
//! meanwhile, which are looked up in the same transaction; or of one that was archived behind the check, so the archive is read once more before a key is
//! called lost.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};
use waterwheel_durable_core::store::{Due, Level};

use super::finding::{Finding, KEY_IS_TAKEN, ROW, USELESS};
use super::rows::{ARCHIVE, Cells, run};
use super::{Check, Known, OpenError};
use crate::archive;
use crate::find::MOVED;
use crate::keys::{Holder, Name, is_filter, read_entries};

/// The timers seen so far, by their ids.
#[derive(Default)]
pub(super) struct Orphans {
    /// Those with a key.
    pub(super) keyed: Vec<i64>,
    /// Those that the table `moved` has.
    pub(super) moved: Vec<i64>,
    /// Whether both are in order.
    is_sorted: bool,
    /// A table of timers could not be read to its end.
    pub(super) is_partial: bool,
    /// Keys whose timers were not found.
    lost: Vec<Lost>,
}

struct Lost {
    name: Name,
    holder: Holder,
    table: &'static str,
    row: String,
}

impl Orphans {
    fn sort(&mut self) {
        if !self.is_sorted {
            self.keyed.sort_unstable();
            self.moved.sort_unstable();
            self.is_sorted = true;
        }
    }
}

impl Check<'_> {
    /// A row of the table `moved`.
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

    /// A row of the index of the keys.
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
            // The later of two entries of a key holds.
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

    /// Says which keys are of no timer.
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
            // It was looked at before.
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
                    timer: Some(waterwheel_durable_core::store::Id::from_stored(
                        holder.id.unsigned_abs(),
                    )),
                    what: "it has the key of this timer, which does not exist".to_owned(),
                    cure: KEY_IS_TAKEN,
                });
            }
        }
        Ok(())
    }
}

/// Whether a timer waits that was due then at first.
fn is_there(connection: &Connection, id: i64, due: i64) -> rusqlite::Result<bool> {
    let mut moved = connection.prepare_cached(MOVED)?;
    let moved: Option<Value> = moved.query_row([id], |row| row.get(0)).optional()?;
    let due = match moved {
        Some(Value::Integer(due)) => due,
        _ => due,
    };
    let due = Due::from_millis(due);
    let near = "SELECT 1 FROM timers
        WHERE level = 0 AND handler IN (SELECT number FROM handlers) AND bucket = ?1 AND id = ?2";
    if connection
        .prepare_cached(near)?
        .exists((due.second(), id))?
    {
        return Ok(true);
    }
    let far = "SELECT 1 FROM timers WHERE level = ?1 AND handler = 0 AND bucket = ?2 AND id = ?3";
    let mut far = connection.prepare_cached(far)?;
    for level in Level::CASCADING {
        if far.exists((level.number(), level.bucket(due).number, id))? {
            return Ok(true);
        }
    }
    Ok(false)
}
