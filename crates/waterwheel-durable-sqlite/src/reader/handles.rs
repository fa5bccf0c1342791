//! Which timers are in the file, bucket by bucket?
//!
//! Timers are listed in storage order: by the start of their bucket, the longer of two buckets with the same start first, and by their ids. So a page reads
//! little more than it returns, however long its bucket is, and operations on its timers affect neighbours in the file. A cascade moves a timer to a bucket
//! that comes later in this order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;

use waterwheel_durable_core::store::{Bucket, Due, Handle, Id, Level};

use super::snapshot::Snapshot;
use crate::read::{misplaced, stored};

const KEYS: &str = "
    SELECT bucket, id, due, far_handler, first_due FROM timers
    WHERE level = ?1 AND handler = ?2 AND (bucket, id) > (?3, ?4)
    ORDER BY bucket, id";

/// A page of the timers of some handlers.
pub(crate) struct Page {
    of: HashSet<i64>,
    after: Option<(Bucket, Id)>,
    limit: usize,
    /// The places found so far. The last one is on top.
    places: BinaryHeap<Place>,
}

/// The place of a timer, in the order of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    start: Due,
    level: Reverse<Level>,
    id: Id,
    due: Due,
    first_due: Due,
    handler: i64,
}

impl Page {
    pub(crate) fn new(of: HashSet<i64>, after: Option<(Bucket, Id)>, limit: usize) -> Page {
        let places = BinaryHeap::new();
        Page {
            of,
            after,
            limit,
            places,
        }
    }

    pub(crate) fn of(mut self, snapshot: &Snapshot<'_>) -> rusqlite::Result<Vec<(Handle, Bucket)>> {
        let handlers: Vec<i64> = self.of.iter().copied().collect();
        for handler in handlers {
            self.look_through(snapshot, Level::Second, handler)?;
        }
        for level in Level::CASCADING {
            self.look_through(snapshot, level, 0)?;
        }
        let places = self.places.into_sorted_vec().into_iter();
        let handles = places.map(|place| {
            let handler = Arc::clone(snapshot.handlers.name(place.handler)?);
            let (id, due) = (place.id, place.first_due);
            let bucket = place.level.0.bucket(place.due);
            Ok((Handle { id, due, handler }, bucket))
        });
        handles.collect()
    }

    /// Reads the rows whose keys share a prefix. `under` is 0 in coarser levels.
    fn look_through(
        &mut self,
        snapshot: &Snapshot<'_>,
        level: Level,
        under: i64,
    ) -> rusqlite::Result<()> {
        let (after_bucket, after_id) = self.after_in(level);
        let mut keys = snapshot.prepare(KEYS)?;
        let mut rows = keys.query((level.number(), under, after_bucket, after_id))?;
        while let Some(row) = rows.next()? {
            let (number, id, due): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (owner, first_due): (Option<i64>, Option<i64>) = (row.get(3)?, row.get(4)?);
            let bucket = Bucket { level, number };
            let place = Place {
                start: bucket.start(),
                level: Reverse(level),
                id: Id::from_stored(id.unsigned_abs()),
                due: Due::from_millis(due),
                first_due: Due::from_millis(first_due.unwrap_or(due)),
                handler: owner.unwrap_or(under),
            };
            if level.bucket(place.due) != bucket {
                return Err(misplaced(place.id));
            }
            let is_full = self.places.len() >= self.limit;
            if is_full && self.places.peek().is_none_or(|last| *last < place) {
                break;
            }
            if self.of.contains(&place.handler) {
                self.places.push(place);
                if is_full {
                    self.places.pop();
                }
            }
        }
        Ok(())
    }

    /// The bucket and the id after which the page begins in a level.
    fn after_in(&self, level: Level) -> (i64, i64) {
        let Some((bucket, id)) = self.after else {
            return (i64::MIN, i64::MIN);
        };
        if level == bucket.level {
            return (bucket.number, stored(id));
        }
        let same = level.bucket(bucket.start());
        match same.start() == bucket.start() && level < bucket.level {
            true => (same.number, i64::MIN),
            false => (same.number, i64::MAX),
        }
    }
}
