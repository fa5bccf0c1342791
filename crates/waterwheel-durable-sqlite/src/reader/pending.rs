//! Which timers come first?
//!
//! The due times of a bucket's timers are within its time span, in no order. So the buckets of each level are read in order, and the first timers so far are
//! kept. Once a bucket begins after the last of these, no further timer of that level can be among the first.

use std::collections::{BinaryHeap, HashSet};

use waterwheel_durable_core::store::{Bucket, Due, Id, Level, PageLimit};

use super::find::Pending;
use super::snapshot::Snapshot;
use crate::error::damaged;
use crate::read::{misplaced, timer_in};

const KEYS: &str = "
    SELECT bucket, id, due, far_handler FROM timers
    WHERE level = ?1 AND handler = ?2 AND bucket >= ?3
    ORDER BY bucket, id";

/// The first timers of some handlers.
pub(crate) struct First {
    of: HashSet<i64>,
    after: (Due, Id),
    until: Due,
    limit: PageLimit,
    /// The places found so far. The last one is on top.
    places: BinaryHeap<Place>,
}

/// The place of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    due: Due,
    id: Id,
    level: Level,
    /// The number of the handler; 0 in coarser levels.
    handler: i64,
}

impl First {
    pub(crate) fn new(of: HashSet<i64>, after: (Due, Id), until: Due, limit: PageLimit) -> First {
        let places = BinaryHeap::new();
        First {
            of,
            after,
            until,
            limit,
            places,
        }
    }

    pub(crate) fn of(mut self, snapshot: &Snapshot<'_>) -> rusqlite::Result<Vec<Pending>> {
        let mut handlers: Vec<i64> = self.of.iter().copied().collect();
        handlers.sort_unstable();
        for handler in handlers {
            self.look_through(snapshot, Level::Second, handler)?;
        }
        for level in Level::CASCADING {
            self.look_through(snapshot, level, 0)?;
        }
        let limit = self.limit;
        let places = self.places.into_sorted_vec();
        limit.take_sized(
            places.into_iter().map(|at| {
                let bucket = at.level.bucket(at.due);
                let found = timer_in(
                    snapshot.connection,
                    &snapshot.handlers,
                    bucket,
                    at.handler,
                    at.id,
                )?;
                let found = found.map(|row| Pending { row, bucket });
                found.ok_or_else(|| damaged("a timer was read once and then not found again"))
            }),
            |pending| pending.row.bytes(),
        )
    }

    fn look_through(
        &mut self,
        snapshot: &Snapshot<'_>,
        level: Level,
        handler: i64,
    ) -> rusqlite::Result<()> {
        let from = level.bucket(self.after.0).number;
        let mut keys = snapshot.prepare(KEYS)?;
        let mut rows = keys.query((level.number(), handler, from))?;
        while let Some(row) = rows.next()? {
            let bucket = Bucket {
                level,
                number: row.get(0)?,
            };
            if self.is_after_all(bucket) {
                break;
            }
            let (id, due): (i64, i64) = (row.get(1)?, row.get(2)?);
            let place = Place {
                due: Due::from_millis(due),
                id: Id::from_stored(id.unsigned_abs()),
                level,
                handler,
            };
            if level.bucket(place.due) != bucket {
                return Err(misplaced(place.id));
            }
            let owner: Option<i64> = row.get(3)?;
            if self.of.contains(&owner.unwrap_or(handler)) {
                self.keep(place);
            }
        }
        Ok(())
    }

    fn is_after_all(&self, bucket: Bucket) -> bool {
        let start = bucket.start();
        let is_full = self.places.len() >= self.limit.rows;
        let last = self.places.peek().filter(|_| is_full);
        start > self.until || last.is_some_and(|last| last.due < start)
    }

    fn keep(&mut self, place: Place) {
        if (place.due, place.id) <= self.after || place.due > self.until {
            return;
        }
        self.places.push(place);
        if self.places.len() > self.limit.rows {
            self.places.pop();
        }
    }
}
