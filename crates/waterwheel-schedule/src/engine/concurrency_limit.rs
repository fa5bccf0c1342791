//! How many jobs run at a time: of the scheduler, and of each group.
//!
//! A job that is due queues for a permit of its group, then for one of the scheduler, by deadline and submission. A job that queues for a permit of the scheduler
//! holds its permit of the group. There is no circle, since the scheduler's permits are held by jobs that run, and by no others.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::time::Instant;
use waterwheel::wheel::Key;

use crate::info::JobId;

/// Where a job stands among others: its deadline, and then the order of submission.
pub(crate) type Rank = (Instant, JobId);

/// A number of permits, and which jobs wait for one.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimit {
    pub(crate) name: Option<Arc<str>>,
    /// `None` for no bound.
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

    /// Takes a permit without a bound, past the queue: there is none.
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

    /// The first job of the queue, if there is a permit for it. The job has the permit.
    pub(crate) fn acquire_for_next(&mut self) -> Option<Key> {
        if self.is_full() {
            return None;
        }
        let (_, key) = self.queue.pop_first()?;
        self.acquired += 1;
        Some(key)
    }
}
