//! The memory budget: how much may be in memory?
//!
//! So many timers of each handler, and so many bytes of all. The timers of a handler may take as many bytes as are left free. So one that hangs has half of
//! them at most, the next one a quarter, and a handler whose timers are light goes on beside both. After some twenty of them nothing would be left: so each
//! handler has a floor, which it may fill however little is free, and beyond it one row, however large. The bound is passed by that much a handler at most.
//!
//! A namespace that is paused or drained has nothing in memory but what is with its handlers: how much of it is overdue is nothing to the others.
//!
//! What is in memory for its time keeps nothing out that is due in an earlier second: it leaves memory again, and is read once there is memory.

use crate::store::{Id, PageLimit, Row};
use foldhash::HashSet;

use super::Engine;
use super::loaded::{ROW_BYTES, Share};
use super::planted::{self, Planted};

/// What a handler may have in memory however little is free: some hundred light timers, so that its places are taken while the next ones are loaded. It is less
/// where there is little memory at all.
const FLOOR_BYTES: usize = 64 << 10;

/// Bytes of the rows that are in memory, and bytes reserved for loads in flight.
#[derive(Debug, Default)]
pub(super) struct MemoryBudget {
    pub(super) held: usize,
    reserved: usize,
}

impl MemoryBudget {
    /// Reserves memory for a load that was requested.
    pub(super) fn reserve(&mut self, limit: PageLimit) {
        self.reserved += largest(limit);
    }

    /// Releases what was reserved for a load that was answered.
    pub(super) fn release_reserved(&mut self, limit: PageLimit) {
        self.reserved -= largest(limit);
    }
}

/// What a load may bring, but for the last row.
fn largest(limit: PageLimit) -> usize {
    limit.bytes + limit.rows * ROW_BYTES
}

impl Engine {
    /// How much a load may bring. `None` if that is too little to be worth it: something that is in memory has to leave first.
    pub(super) fn load_limit(&self, queue: usize) -> Option<PageLimit> {
        let (queue, limit) = (&self.queues[queue], self.config.max_in_memory);
        let free = self.free();
        if queue.held > limit / 4 * 3 || queue.bytes > free / 2 {
            return None;
        }
        // Half of what fits, for the rows and for what they carry each.
        let bytes = ((free - queue.bytes) / 4).min(self.config.max_bytes_in_memory / 32);
        let rows = (limit - queue.held).min(self.config.page);
        Some(PageLimit {
            rows: rows.min(bytes / ROW_BYTES).max(1),
            bytes: bytes.max(1),
        })
    }

    /// Evicts timers that are due after this second, to load rows of it. Returns how much a load may bring then.
    pub(super) fn evict_later_than(&mut self, index: usize, first: i64) -> Option<PageLimit> {
        let queue = &mut self.queues[index];
        if queue.last <= first || planted::is(Planted::LaterKeepsOutSooner) {
            return None;
        }
        queue.last = first;
        self.evict(|queue, second| queue == index && second > first);
        self.load_limit(index)
    }

    /// What lies beyond the horizon leaves memory: the clock was set back.
    pub(super) fn evict_beyond_horizon(&mut self) {
        let horizon = self.horizon();
        if self.queues.iter().any(|queue| queue.last > horizon) {
            for queue in &mut self.queues {
                queue.last = queue.last.min(horizon);
            }
            self.evict(|_, second| second > horizon);
        }
    }

    /// Nothing of a namespace begins any more: what waits leaves memory.
    pub(super) fn evict_closed(&mut self, namespace: usize) {
        let closed: HashSet<_> = self.namespaces[namespace].queues.iter().copied().collect();
        self.evict(|queue, _| closed.contains(&queue));
    }

    /// Timers that are not with their handlers leave memory. Their rows are read again.
    fn evict(&mut self, leaves: impl Fn(usize, i64) -> bool) {
        for share in self.loaded.evict(leaves) {
            self.release(Some(share));
            self.written(share.queue, share.second);
        }
    }

    /// Whether another timer of the handler queue may go into memory.
    pub(super) fn fits(&self, queue: usize) -> bool {
        let queue = &self.queues[queue];
        let is_light = queue.bytes == 0 || queue.bytes < self.free();
        let is_open = !self.namespaces[queue.namespace].is_closed();
        is_open && is_light && queue.held < self.config.max_in_memory
    }

    /// Takes a row into memory.
    pub(super) fn hold(&mut self, row: Row, queue: usize) {
        let late = Some(row.due).filter(|due| self.now.is_past(*due));
        let share = self.loaded.hold(row, queue);
        let queue = &mut self.queues[queue];
        queue.late = queue.late.into_iter().chain(late).min();
        queue.held += 1;
        queue.last = queue.last.max(share.second);
        queue.bytes += share.bytes;
        self.memory_budget.held += share.bytes;
    }

    /// A timer that left, or was noted so that no load takes it, has left.
    pub(super) fn retire(&mut self, id: Id) {
        self.poison.forget(id);
        let share = self.loaded.forget(id, self.in_flight.loading());
        self.release(share);
    }

    /// A timer was to leave, and nothing came of it. The row is where it was, so it is read again.
    pub(super) fn restore(&mut self, id: Id) {
        let Some(leaving) = self.loaded.restore(id) else {
            return;
        };
        self.release(leaving.share);
        if let Some(share) = leaving.share {
            self.written(share.queue, share.second);
        }
        if let Some((queue, second)) = leaving.left_out
            && !planted::is(Planted::PassedOverWhenRefused)
        {
            self.written(queue, second);
        }
    }

    fn release(&mut self, share: Option<Share>) {
        if let Some(Share { queue, bytes, .. }) = share {
            let queue = &mut self.queues[queue];
            queue.held -= 1;
            queue.bytes -= bytes;
            self.memory_budget.held -= bytes;
        }
    }

    /// What the timers of a handler may take.
    fn free(&self) -> usize {
        let limit = self.config.max_bytes_in_memory;
        let taken = self
            .memory_budget
            .held
            .saturating_add(self.memory_budget.reserved);
        limit.saturating_sub(taken).max(FLOOR_BYTES.min(limit / 32))
    }
}
