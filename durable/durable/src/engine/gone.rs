//! Which timers have left while rows were being loaded?

use std::collections::VecDeque;

use foldhash::{HashMap, HashMapExt as _};
use waterwheel_store::Id;

/// A load that was asked for before a timer left may have read its row, and comes back with it.
#[derive(Debug)]
pub(super) struct Gone {
    /// The last request by the time that the timer left.
    last: HashMap<Id, u64>,
    /// The same, in order of the requests.
    order: VecDeque<(u64, Id)>,
}

impl Default for Gone {
    fn default() -> Gone {
        Gone {
            last: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl Gone {
    /// A timer has left. This was the last request by then.
    pub(super) fn note(&mut self, id: Id, last: u64) {
        self.last.insert(id, last);
        self.order.push_back((last, id));
    }

    /// Whether what this load has read of the timer may be older than its leaving.
    pub(super) fn is_before(&self, id: Id, load: u64) -> bool {
        self.last.get(&id).is_some_and(|last| load <= *last)
    }

    /// The loads that go on were asked for by requests from this one on.
    pub(super) fn loads_since(&mut self, oldest: Option<u64>) {
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
