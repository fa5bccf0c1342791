//! How many jobs run at a time: of the scheduler, and of each group.
//!
//! A job that is due queues for a place of its group, then for one of the scheduler, by deadline and submission. A job that queues for a place of the scheduler
//! holds its place of the group. There is no circle, since the scheduler's places are held by jobs that run, and by no others.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::time::Instant;
use waterwheel::wheel::Key;

use crate::info::JobId;

/// Where a job stands among others: its deadline, and then the order of submission.
pub(crate) type Rank = (Instant, JobId);

/// A number of places, and which jobs wait for one.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) name: Option<Arc<str>>,
    /// `None` for no bound.
    most: Option<NonZeroUsize>,
    taken: usize,
    queue: BTreeMap<Rank, Key>,
}

impl Limit {
    pub(crate) fn new(name: Option<Arc<str>>, most: Option<NonZeroUsize>) -> Limit {
        Limit {
            name,
            most,
            taken: 0,
            queue: BTreeMap::new(),
        }
    }

    fn is_full(&self) -> bool {
        self.most.is_some_and(|most| self.taken >= most.get())
    }

    pub(crate) fn is_bounded(&self) -> bool {
        self.most.is_some()
    }

    /// Takes a place without a bound, past the queue: there is none.
    pub(crate) fn take_unbounded(&mut self) -> bool {
        if self.most.is_some() {
            return false;
        }
        self.taken += 1;
        true
    }

    pub(crate) fn queue(&mut self, rank: Rank, key: Key) {
        self.queue.insert(rank, key);
    }

    pub(crate) fn leave_queue(&mut self, rank: Rank) {
        self.queue.remove(&rank);
    }

    pub(crate) fn give_back(&mut self) {
        self.taken -= 1;
    }

    /// The first job of the queue, if there is a place for it. The job has the place.
    pub(crate) fn next(&mut self) -> Option<Key> {
        if self.is_full() {
            return None;
        }
        let (_, key) = self.queue.pop_first()?;
        self.taken += 1;
        Some(key)
    }
}
