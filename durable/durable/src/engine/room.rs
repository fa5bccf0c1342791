//! How much may be in memory?
//!
//! So many timers of each handler, and so many bytes of all. The timers of a handler may take as many bytes as are left free. So one that hangs has half of
//! them at most, the next one a quarter, and a handler whose timers are light goes on beside both. After some twenty of them nothing would be left: so each
//! handler has a floor, which it may fill however little is free, and beyond it one row, however large. The bound is passed by that much a handler at most.
//!
//! A namespace that is paused or drained has nothing in memory but what is with its handlers: how much of it is overdue is nothing to the others.
//!
//! What is in memory for its time keeps nothing out that is due in an earlier second: it leaves memory again, and is read once there is room.

use foldhash::HashSet;
use waterwheel_store::{Id, PageLimit, Row};

use super::Engine;
use super::near::{ROW_BYTES, Share};
use super::planted::{self, Planted};

/// What a handler may have in memory however little is free: some hundred light timers, so that its places are taken while the next ones are loaded. It is less
/// where there is little memory at all.
const FLOOR_BYTES: usize = 64 << 10;

/// Bytes of the rows that are in memory, and bytes reserved for loads in flight.
#[derive(Debug, Default)]
pub(super) struct Room {
    pub(super) held: usize,
    reserved: usize,
}

impl Room {
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
    pub(super) fn room(&self, lane: usize) -> Option<PageLimit> {
        let (lane, limit) = (&self.lanes[lane], self.config.max_in_memory);
        let free = self.free();
        if lane.held > limit / 4 * 3 || lane.bytes > free / 2 {
            return None;
        }
        // Half of what fits, for the rows and for what they carry each.
        let bytes = ((free - lane.bytes) / 4).min(self.config.max_bytes_in_memory / 32);
        let rows = (limit - lane.held).min(self.config.page);
        Some(PageLimit {
            rows: rows.min(bytes / ROW_BYTES).max(1),
            bytes: bytes.max(1),
        })
    }

    /// Makes room for rows of this second, if timers take it that are due later. Returns how much a load may bring then.
    pub(super) fn make_room(&mut self, index: usize, first: i64) -> Option<PageLimit> {
        let lane = &mut self.lanes[index];
        if lane.last <= first || planted::is(Planted::LaterKeepsOutSooner) {
            return None;
        }
        lane.last = first;
        self.let_go(|lane, second| lane == index && second > first);
        self.room(index)
    }

    /// What lies beyond the horizon leaves memory: the clock was set back.
    pub(super) fn let_go_of_far(&mut self) {
        let horizon = self.horizon();
        if self.lanes.iter().any(|lane| lane.last > horizon) {
            for lane in &mut self.lanes {
                lane.last = lane.last.min(horizon);
            }
            self.let_go(|_, second| second > horizon);
        }
    }

    /// Nothing of a namespace begins any more: what waits leaves memory.
    pub(super) fn let_go_of_closed(&mut self, namespace: usize) {
        let closed: HashSet<_> = self.namespaces[namespace].lanes.iter().copied().collect();
        self.let_go(|lane, _| closed.contains(&lane));
    }

    /// Timers that are not with their handlers leave memory. Their rows are read again.
    fn let_go(&mut self, leaves: impl Fn(usize, i64) -> bool) {
        for share in self.near.let_go(leaves) {
            self.release(Some(share));
            self.written(share.lane, share.second);
        }
    }

    /// Whether another timer of the lane may go into memory.
    pub(super) fn fits(&self, lane: usize) -> bool {
        let lane = &self.lanes[lane];
        let is_light = lane.bytes == 0 || lane.bytes < self.free();
        let is_open = !self.namespaces[lane.namespace].is_closed();
        is_open && is_light && lane.held < self.config.max_in_memory
    }

    /// Takes a row into memory.
    pub(super) fn hold(&mut self, row: Row, lane: usize) {
        let late = Some(row.due).filter(|due| self.now.is_past(*due));
        let share = self.near.hold(row, lane);
        let lane = &mut self.lanes[lane];
        lane.late = lane.late.into_iter().chain(late).min();
        lane.held += 1;
        lane.last = lane.last.max(share.second);
        lane.bytes += share.bytes;
        self.room.held += share.bytes;
    }

    /// A timer that left, or was noted so that no load takes it, has left.
    pub(super) fn retire(&mut self, id: Id) {
        self.poison.forget(id);
        let share = self.near.forget(id, self.in_flight.loading());
        self.release(share);
    }

    /// A timer was to leave, and nothing came of it. The row is where it was, so it is read again.
    pub(super) fn restore(&mut self, id: Id) {
        let Some(leaving) = self.near.restore(id) else {
            return;
        };
        self.release(leaving.share);
        if let Some(share) = leaving.share {
            self.written(share.lane, share.second);
        }
        if let Some((lane, second)) = leaving.left_out
            && !planted::is(Planted::PassedOverWhenRefused)
        {
            self.written(lane, second);
        }
    }

    fn release(&mut self, share: Option<Share>) {
        if let Some(Share { lane, bytes, .. }) = share {
            let lane = &mut self.lanes[lane];
            lane.held -= 1;
            lane.bytes -= bytes;
            self.room.held -= bytes;
        }
    }

    /// What the timers of a handler may take.
    fn free(&self) -> usize {
        let limit = self.config.max_bytes_in_memory;
        let taken = self.room.held.saturating_add(self.room.reserved);
        limit.saturating_sub(taken).max(FLOOR_BYTES.min(limit / 32))
    }
}
