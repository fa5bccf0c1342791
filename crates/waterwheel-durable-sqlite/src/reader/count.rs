use std::collections::HashMap;
use std::sync::Arc;

use waterwheel_durable_core::store::{Due, Level};

use super::snapshot::Snapshot;
use crate::error::damaged;
use crate::read::Handlers;

const PENDING: &str = "
    SELECT level, coalesce(far_handler, handler), due, failures FROM timers";

/// The number of timers of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// The full name of the handler.
    pub handler: Arc<str>,
    /// The number of pending timers in the buckets of each level, indexed by its [number](Level::number): seconds
    /// first.
    pub levels: [u64; 5],
    /// The number of pending timers that are due.
    pub overdue: u64,
    /// The number of pending timers that have failed at least once.
    pub failed: u64,
    /// The earliest due time of the pending timers.
    pub first: Option<Due>,
    /// The number of dead letters.
    pub dead: u64,
    /// The number of records in the archive of delivered timers.
    pub archived: u64,
}

impl Count {
    fn new(handler: Arc<str>) -> Count {
        Count {
            handler,
            levels: [0; 5],
            overdue: 0,
            failed: 0,
            first: None,
            dead: 0,
            archived: 0,
        }
    }

    /// Returns the number of pending timers.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.levels.iter().sum()
    }

    /// Returns the number of pending timers in the buckets of a level.
    #[must_use]
    pub fn at(&self, level: Level) -> u64 {
        self.levels[usize::from(level.number())]
    }
}

pub(crate) fn count(snapshot: &Snapshot<'_>, now: Due) -> rusqlite::Result<Vec<Count>> {
    let handlers = &snapshot.handlers;
    let mut counts = Counts {
        of: HashMap::new(),
        handlers,
    };
    let mut pending = snapshot.prepare(PENDING)?;
    let mut rows = pending.query([])?;
    while let Some(row) = rows.next()? {
        let (level, due) = (row.get::<_, u8>(0)?, Due::from_millis(row.get(2)?));
        let count = counts.of(row.get(1)?)?;
        let at = count.levels.get_mut(usize::from(level));
        *at.ok_or_else(|| damaged("a timer is in a level that does not exist"))? += 1;
        count.overdue += u64::from(due <= now);
        count.failed += u64::from(row.get::<_, u32>(3)? > 0);
        count.first = Some(count.first.map_or(due, |first| first.min(due)));
    }
    let mut dead = snapshot.prepare("SELECT handler FROM dead")?;
    let mut rows = dead.query([])?;
    while let Some(row) = rows.next()? {
        counts.of(row.get(0)?)?.dead += 1;
    }
    let mut archived = snapshot.prepare("SELECT handler, count FROM archive")?;
    let mut rows = archived.query([])?;
    while let Some(row) = rows.next()? {
        counts.of(row.get(0)?)?.archived += u64::from(row.get::<_, u32>(1)?);
    }
    for name in handlers.all() {
        if let Some(number) = handlers.number(&name) {
            counts.of(number)?;
        }
    }
    let mut counts: Vec<Count> = counts.of.into_values().collect();
    counts.sort_unstable_by(|one, other| one.handler.cmp(&other.handler));
    Ok(counts)
}

struct Counts<'a> {
    of: HashMap<i64, Count>,
    handlers: &'a Handlers,
}

impl Counts<'_> {
    fn of(&mut self, handler: i64) -> rusqlite::Result<&mut Count> {
        if !self.of.contains_key(&handler) {
            let name = Arc::clone(self.handlers.name(handler)?);
            self.of.insert(handler, Count::new(name));
        }
        self.of
            .get_mut(&handler)
            .ok_or(rusqlite::Error::QueryReturnedNoRows)
    }
}
