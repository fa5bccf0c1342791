//! The turns of a timer on a manual clock: the thread that advances the clock takes them, and no driver does.
//!
//! # No wake-up is lost
//!
//! An advance writes the time, and then turns each shard to it with the shard's lock held, whatever the shard's `next` says. A future that
//! has the lock before that is in the wheel, and the turn fires it. A future that has the lock after that finds the wheel's hand at the new
//! time: what is not after it is due at once, and is not filed. So nothing asks for a turn (`Wakeup::request`).

use std::sync::{Arc, Weak};

use tokio::time::Instant;

use super::one_shard;
use super::wakers::Wakers;
use crate::clock::{ManualClock, Turned};
use crate::driver::shard::ShardList;

/// From now on the clock turns the shards on this list.
pub(in crate::driver) fn turn_by_hand(clock: &ManualClock, list: &Arc<ShardList>) {
    let list: Weak<ShardList> = Arc::downgrade(list);
    clock.add(list);
}

impl Turned for ShardList {
    fn next(&self) -> Option<Instant> {
        let shards = self.in_use();
        let next = shards.iter().map(|shard| (shard.next(), shard.clock()));
        next.min_by_key(|&(next, _)| next)
            .and_then(|(next, clock)| clock.instant_of(next))
    }

    fn turn(&self, now: Instant) -> u64 {
        let mut shards = Vec::new();
        self.list_for_turn(&mut shards);
        let mut wakers = Wakers::default();
        shards
            .iter()
            .map(|shard| one_shard::turn_by_hand(shard, now, &mut wakers))
            .sum()
    }

    fn has_pending(&self) -> bool {
        !self.in_use().iter().all(|shard| shard.is_empty())
    }
}
