//! Tombstones: which timers have left while rows were being loaded?

use std::collections::VecDeque;

use crate::store::Id;
use foldhash::{HashMap, HashMapExt as _};

/// A load that was requested before a timer left may have read its row, and would bring it back. A tombstone prevents that.
#[derive(Debug)]
pub(super) struct Tombstones {
    /// The last request by the time that the timer left.
    last: HashMap<Id, u64>,
    /// The same, in order of the requests.
    order: VecDeque<(u64, Id)>,
}

impl Default for Tombstones {
    fn default() -> Tombstones {
        Tombstones {
            last: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl Tombstones {
    /// Adds a tombstone for a timer that has left. `last` is the last request that was sent by then.
    pub(super) fn add(&mut self, id: Id, last: u64) {
        self.last.insert(id, last);
        self.order.push_back((last, id));
    }

    /// Returns whether this load may have read the row before the timer left.
    pub(super) fn covers(&self, id: Id, load: u64) -> bool {
        self.last.get(&id).is_some_and(|last| load <= *last)
    }

    /// Removes the tombstones that no load in flight needs: `oldest` is the first of those loads.
    pub(super) fn prune(&mut self, oldest: Option<u64>) {
        let oldest = oldest.unwrap_or(u64::MAX);
        while let Some((last, id)) = self.order.front()
            && *last < oldest
        {
            if self.last.get(id) == Some(last) {
                self.last.remove(id);
            }
            self.order.pop_front();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.last.len().max(self.order.len())
    }
}
