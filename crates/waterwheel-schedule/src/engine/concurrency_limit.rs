//! A limit on how many jobs run at the same time: one for the scheduler, and one for each group.
//!
//! A job that is due acquires a permit of its group first, then one of the scheduler, and holds the first while it waits for the second.
//! This cannot deadlock, since only running jobs hold permits of the scheduler.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::time::Instant;
use waterwheel::wheel::Key;

use crate::info::JobId;

/// The order in which jobs start: by deadline, then by submission.
pub(crate) type Rank = (Instant, JobId);

/// A counting semaphore with an ordered queue of the jobs that wait for a permit.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimit {
    pub(crate) name: Option<Arc<str>>,
    /// `None` if there is no limit.
    max: Option<NonZeroUsize>,
    acquired: usize,
    queue: BTreeMap<Rank, Key>,
}

impl ConcurrencyLimit {
    pub(crate) fn new(name: Option<Arc<str>>, max: Option<NonZeroUsize>) -> ConcurrencyLimit {
        ConcurrencyLimit {
            name,
            max,
            acquired: 0,
            queue: BTreeMap::new(),
        }
    }

    fn is_full(&self) -> bool {
        self.max.is_some_and(|max| self.acquired >= max.get())
    }

    pub(crate) fn is_bounded(&self) -> bool {
        self.max.is_some()
    }

    /// Acquires a permit if there is no limit, and therefore no queue.
    pub(crate) fn try_acquire_unbounded(&mut self) -> bool {
        if self.max.is_some() {
            return false;
        }
        self.acquired += 1;
        true
    }

    pub(crate) fn enqueue(&mut self, rank: Rank, key: Key) {
        self.queue.insert(rank, key);
    }

    pub(crate) fn remove_from_queue(&mut self, rank: Rank) {
        self.queue.remove(&rank);
    }

    pub(crate) fn release(&mut self) {
        self.acquired -= 1;
    }

    /// Acquires a permit for the first job of the queue, if one is free, and removes that job from the queue.
    pub(crate) fn acquire_for_next(&mut self) -> Option<Key> {
        if self.is_full() {
            return None;
        }
        let (_, key) = self.queue.pop_first()?;
        self.acquired += 1;
        Some(key)
    }
}
