//! Which timers have business keys, by what is in the file? Read without the store's code, and without its filters and its order of work.

use std::collections::BTreeMap;

use rusqlite::{Connection, Error, Row};
use siphasher::sip128::SipHasher24;

/// The timer that has a key, and its due time as it was inserted, by the names of the keys.
#[derive(Debug)]
pub struct Names {
    secret: (u64, u64),
    holders: BTreeMap<u128, (i64, i64)>,
}

/// Reads all.
pub fn read(connection: &Connection) -> rusqlite::Result<Names> {
    let secret = |key: &str| {
        let sql = "SELECT value FROM meta WHERE key = ?1";
        connection.query_row(sql, [key], |row| row.get::<_, i64>(0))
    };
    let secret = (secret("key secret 1")?, secret("key secret 2")?);
    let mut names = Names {
        secret: (secret.0.cast_unsigned(), secret.1.cast_unsigned()),
        holders: BTreeMap::new(),
    };
    // How far the runs are that others are merged into.
    let mut ends = BTreeMap::new();
    each(
        connection,
        "SELECT number, bits, done FROM key_runs",
        |row| {
            let (bits, done): (u32, u32) = (row.get(1)?, row.get(2)?);
            let end = u128::from(done).checked_shl(128 - bits);
            ends.insert(row.get::<_, i64>(0)?, end.filter(|_| done < 1 << bits));
            Ok(())
        },
    )?;
    // The oldest first, so that the younger ones count. What is merged is of one age with the youngest of its sources, and has other names.
    let sql = "SELECT key_chunks.entries, merged_into FROM key_chunks
        JOIN key_runs ON key_runs.number = key_chunks.number >> 32 ORDER BY age";
    each(connection, sql, |row| {
        let into: Option<i64> = row.get(1)?;
        let from = into.and_then(|into| ends.get(&into).copied().flatten());
        names.add(row.get_ref(0)?.as_blob()?, from.unwrap_or(0))
    })?;
    each(
        connection,
        "SELECT entries FROM key_changes ORDER BY number",
        |row| names.add(row.get_ref(0)?.as_blob()?, 0),
    )?;
    names.holders.retain(|_, (id, _)| *id != 0);
    Ok(names)
}

impl Names {
    /// Adds the entries of a blob from a name on.
    fn add(&mut self, blob: &[u8], from: u128) -> rusqlite::Result<()> {
        for entry in blob.chunks(32) {
            let (name, rest) = entry.split_first_chunk().ok_or(Error::InvalidQuery)?;
            let (id, rest) = rest.split_first_chunk().ok_or(Error::InvalidQuery)?;
            let due = rest.first_chunk().ok_or(Error::InvalidQuery)?;
            let name = u128::from_be_bytes(*name);
            if name >= from {
                let holder = (i64::from_be_bytes(*id), i64::from_be_bytes(*due));
                self.holders.insert(name, holder);
            }
        }
        Ok(())
    }

    /// Takes out the timer that has a key.
    pub fn take(&mut self, handler: i64, key: &[u8]) -> Option<(i64, i64)> {
        let named = [&handler.to_le_bytes(), key].concat();
        let hash = SipHasher24::new_with_keys(self.secret.0, self.secret.1).hash(&named);
        self.holders.remove(&hash.as_u128())
    }

    /// How many keys are left.
    pub fn left(&self) -> usize {
        self.holders.len()
    }
}

/// Reads each row.
pub fn each(
    connection: &Connection,
    sql: &str,
    mut take: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        take(row)?;
    }
    Ok(())
}
