//! Where do the rows of a coarser bucket go?
//!
//! [`Bucket::finer`] is a function of the due time and the present: rows go to days, hours, minutes or seconds, depending on which of three due times they have
//! reached. So SQL can move a page of rows at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::{Connection, params};
use waterwheel_durable_core::store::{Bucket, Due, Level, Outcome, PageLimit};

use super::read::{level, sql_limit};
use super::write::Writer;

/// How many bytes are moved at a time, and about how many a row has beside its payload and its key: a file with a limit needs space for
/// one slice more than it has. A longer row is a slice of its own.
const SLICE: usize = 64 << 10;
const ROW: usize = 1_000;

/// The rows of a page and their sizes. SQLite reads a length from where the row begins, without the row's overflow pages.
const SIZES: &str = "
    SELECT id, length(payload), length(key), octet_length(tag), length(retries) FROM timers
    WHERE level = ?1 AND handler = 0 AND bucket = ?2
    ORDER BY id LIMIT ?3";

/// How many rows of a slice go to each bucket, by handler. `/` rounds towards zero, so 1 is subtracted from a negative quotient that is not whole.
const GROUPS: &str = "
    SELECT CASE WHEN due >= ?4 THEN 3 WHEN due >= ?5 THEN 2 WHEN due >= ?6 THEN 1 ELSE 0 END AS finer,
        CASE WHEN due >= ?4 THEN due / 86400000 - (due % 86400000 < 0)
            WHEN due >= ?5 THEN due / 3600000 - (due % 3600000 < 0)
            WHEN due >= ?6 THEN due / 60000 - (due % 60000 < 0)
            ELSE due / 1000 - (due % 1000 < 0) END AS number,
        far_handler, count(*)
    FROM timers WHERE level = ?1 AND handler = 0 AND bucket = ?2 AND id <= ?3
    GROUP BY finer, number, far_handler";

const MOVE: &str = "
    INSERT OR REPLACE INTO timers
        (level, handler, bucket, id, due, failures, first_due, far_handler, key, tag, retries, payload, starts)
    SELECT
        CASE WHEN due >= ?4 THEN 3 WHEN due >= ?5 THEN 2 WHEN due >= ?6 THEN 1 ELSE 0 END AS finer,
        CASE WHEN due >= ?4 OR due >= ?5 OR due >= ?6 THEN 0 ELSE far_handler END AS under,
        CASE WHEN due >= ?4 THEN due / 86400000 - (due % 86400000 < 0)
            WHEN due >= ?5 THEN due / 3600000 - (due % 3600000 < 0)
            WHEN due >= ?6 THEN due / 60000 - (due % 60000 < 0)
            ELSE due / 1000 - (due % 1000 < 0) END AS number,
        id, due, failures, first_due,
        CASE WHEN due >= ?4 OR due >= ?5 OR due >= ?6 THEN far_handler END,
        key, tag, retries, payload, starts
    FROM timers WHERE level = ?1 AND handler = 0 AND bucket = ?2 AND id <= ?3
    ORDER BY finer, under, number, id";

const DELETE: &str =
    "DELETE FROM timers WHERE level = ?1 AND handler = 0 AND bucket = ?2 AND id <= ?3";

impl Writer<'_> {
    pub(crate) fn cascade(
        &mut self,
        bucket: Bucket,
        now: Due,
        limit: PageLimit,
    ) -> rusqlite::Result<Outcome> {
        let mut outcome = Cascaded::default();
        let at = (bucket.level.number(), bucket.number);
        if bucket.level != Level::Second {
            let from = |level| (level < bucket.level).then(|| opens(level, now)).flatten();
            let [minutes, hours, days] = [Level::Minute, Level::Hour, Level::Day].map(from);
            // A slice is there twice until it is deleted.
            for last in self.slices(bucket, limit)? {
                let slice = params![at.0, at.1, last, days, hours, minutes];
                self.count(bucket, slice, &mut outcome)?;
                self.connection.prepare_cached(MOVE)?.execute(slice)?;
                let mut delete = self.connection.prepare_cached(DELETE)?;
                delete.execute((at.0, at.1, last))?;
            }
        }
        Ok(Outcome::Cascaded {
            is_empty: is_empty(self.connection, bucket)?,
            buckets: outcome.buckets,
            seconds: outcome.seconds.into_iter().collect(),
        })
    }

    /// The last row of each slice of a page, in order.
    fn slices(&self, bucket: Bucket, limit: PageLimit) -> rusqlite::Result<Vec<i64>> {
        let mut sizes = self.connection.prepare_cached(SIZES)?;
        let asked = (bucket.level.number(), bucket.number, sql_limit(limit.rows));
        let sizes = sizes.query_map(asked, |row| {
            // Each fits in 32 bits.
            let length = |at| Ok::<_, rusqlite::Error>(row.get::<_, Option<u32>>(at)?.unwrap_or(0));
            let bytes = length(1)? as usize + length(2)? as usize;
            let extras = length(3)? as usize + length(4)? as usize;
            Ok((row.get(0)?, bytes + extras))
        })?;
        let page = limit.take_sized(sizes, |(_, bytes)| *bytes)?;
        let mut slices = Vec::new();
        let mut left = 0;
        for (id, bytes) in page {
            let takes = bytes + ROW;
            match slices.last_mut() {
                Some(last) if takes <= left => *last = id,
                _ => {
                    left = SLICE;
                    slices.push(id);
                }
            }
            left = left.saturating_sub(takes);
        }
        Ok(slices)
    }

    /// Counts the rows of a slice in the buckets that they go to.
    fn count(
        &mut self,
        from: Bucket,
        slice: &[&dyn rusqlite::ToSql],
        outcome: &mut Cascaded,
    ) -> rusqlite::Result<()> {
        let mut groups = self.connection.prepare_cached(GROUPS)?;
        let mut rows = groups.query(slice)?;
        while let Some(row) = rows.next()? {
            let (level, number) = (level(row.get(0)?)?, row.get(1)?);
            let (handler, count): (i64, i64) = (row.get(2)?, row.get(3)?);
            let finer = Bucket { level, number };
            self.counts.pending(from, handler, -count);
            self.counts.pending(finer, handler, count);
            if level == Level::Second {
                let handler = self.handlers.name(handler)?;
                let first = outcome.seconds.entry(handler.clone()).or_insert(i64::MAX);
                *first = number.min(*first);
                continue;
            }
            let mut firsts = outcome.buckets.iter_mut();
            match firsts.find(|of| of.level == level) {
                Some(first) => first.number = first.number.min(number),
                None => outcome.buckets.push(finer),
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct Cascaded {
    buckets: Vec<Bucket>,
    seconds: BTreeMap<Arc<str>, i64>,
}

/// The due time from which on the buckets of a level have not cascaded, or `None` if it is out of range.
fn opens(level: Level, now: Due) -> Option<i64> {
    let (now, lead) = (i128::from(now.as_millis()), i128::from(level.lead()));
    let length = i128::from(level.millis());
    let first = (now + lead).div_euclid(length) + 1;
    match i64::try_from(first * length) {
        Ok(due) => Some(due),
        Err(_) if first < 0 => Some(i64::MIN),
        Err(_) => None,
    }
}

fn is_empty(connection: &Connection, bucket: Bucket) -> rusqlite::Result<bool> {
    if bucket.level == Level::Second {
        return Ok(true);
    }
    let mut first = connection.prepare_cached(SIZES)?;
    let at = (bucket.level.number(), bucket.number, 1);
    Ok(!first.exists(at)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_open_bucket_is_the_one_the_engine_knows() {
        for now in [0, -1, 59_999, -7_200_001, 1_799_999_999_123] {
            let now = Due::from_millis(now);
            for level in [Level::Minute, Level::Hour, Level::Day] {
                let opens = opens(level, now).unwrap();
                let is_open = |due| level.bucket(Due::from_millis(due)).cascades_at() > now;
                assert!(is_open(opens) && !is_open(opens - 1));
            }
        }
        assert_eq!(opens(Level::Hour, Due::from_millis(i64::MAX)), None);
    }
}
