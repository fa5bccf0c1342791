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
use super::one_shard::Wakers;
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

    fn earliest(&self) -> Option<Instant> {
        let shards = self.in_use();
        let earliest = shards.iter().filter_map(|shard| {
            let tick = shard.earliest()?;
            shard.clock().instant_of(tick)
        });
        earliest.min()
    }

    fn turn(&self, now: Instant) {
        let shards = self.in_use();
        if shards
            .iter()
            .any(|shard| shard.next() <= shard.clock().tick_before(now))
        {
            self.count_turn();
        }
        let mut wakers = Wakers::default();
        for shard in shards {
            one_shard::turn_by_hand(&shard, now, &mut wakers);
        }
    }
}
