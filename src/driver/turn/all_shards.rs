//! A turn of every shard that is due, and the driver's next target.

use std::sync::Arc;

use super::catch_up;
use super::one_shard::Waiting;
use super::one_shard::Wakers;
use super::one_shard::{self, Turned};
use crate::driver::shard::{Shard, ShardList};
use crate::driver::wakeup::Wakeup;
use crate::wheel::Tick;

/// What a turn works with. Its memory is kept from one turn to the next.
pub(super) struct Workspace {
    /// The shards that are in use. Empty between two turns.
    shards: Vec<Arc<Shard>>,
    /// How many shards there had ever been when these were listed.
    made: u64,
    /// Whether this turn has left out a shard, since another thread turns it or a catch-up task has it.
    has_left_out: bool,
    /// Whether backlogs are given to catch-up tasks.
    gives: bool,
    wakers: Wakers,
}

impl Workspace {
    /// With room for a usual turn. Larger turns allocate, and `wakers` gives that back.
    /// With `gives`, of the shards that have a backlog after a turn, each but the first is given to a catch-up task.
    pub(super) fn new(gives: bool) -> Workspace {
        Workspace {
            shards: Vec::with_capacity(4),
            made: 0,
            has_left_out: false,
            gives,
            wakers: Wakers::new(),
        }
    }

    /// Lists the shards, turns each that is due, once, and wakes what comes up. `waiting` is since when the turn should have
    /// come. Returns the tick in which the turn began.
    ///
    /// A shard that another thread turns, or that a catch-up task has, is left out of this turn. The driver is woken afterwards.
    pub(super) fn turn(&mut self, list: &ShardList, wakeup: &Wakeup, waiting: Waiting) -> Tick {
        self.made = list.list_for_turn(&mut self.shards);
        let clock = wakeup.clock();
        let now = clock.now();
        let tick = clock.tick_before(now);
        let allowance = waiting.allowance(clock, now, tick);
        let wakers = &mut self.wakers;
        let listed = self.shards.len();
        // The driver keeps the first backlog; and all of them while it has to wait for a worker, as each task would.
        let mut gives = false;
        let may_give = self.gives && !allowance.is_late;
        self.shards.retain(
            |shard| match one_shard::turn(shard, now, tick, allowance, wakers) {
                Turned::All => true,
                Turned::LeftOut => false,
                Turned::Backlog if gives => !catch_up::give(shard),
                Turned::Backlog => {
                    gives = may_give;
                    true
                }
            },
        );
        self.has_left_out = self.shards.len() < listed;
        tick
    }

    /// Whether the turn has left out a shard. Then only the driver's task may end it: the thread that turns the shard wakes the task, and no
    /// other turner.
    pub(super) fn has_left_out(&self) -> bool {
        self.has_left_out
    }

    /// Ends a turn: makes the earliest `next` of the shards the driver's target. Returns whether the driver may sleep towards it:
    /// it is after `now`, and no shard is to be turned before.
    pub(super) fn end_turn(&mut self, list: &ShardList, wakeup: &Wakeup, now: Tick) -> bool {
        let shards = &self.shards;
        let next = shards.iter().map(|shard| shard.next()).min();
        let next = next.unwrap_or(Tick::MAX);
        let is_earliest =
            || list.made() == self.made && shards.iter().all(|shard| shard.next() >= next);
        let may_sleep = next > now && wakeup.sleep_towards(now, next, is_earliest);
        self.clear();
        may_sleep
    }

    /// Whether no shard was listed, or other threads turn them all. To be asked before the turn has ended.
    pub(super) fn has_no_shard(&self) -> bool {
        self.shards.is_empty()
    }

    /// Ends a turn that sets no target.
    pub(super) fn clear(&mut self) {
        self.shards.clear();
    }
}
