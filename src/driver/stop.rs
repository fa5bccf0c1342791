//! How a timer ends: every pending timer ends at once, and every future that waits for it is woken.

use super::lifecycle::{Lifecycle, State};
use super::shard::ShardList;
use super::wake_all::wake_all;
use super::wakeup::Wakeup;

/// Moves the timer on to `Stopped` or `Abandoned` and ends everything that is pending. Returns how many timers that
/// were; zero if the timer was stopped before.
pub(super) fn stop(lifecycle: &Lifecycle, shards: &ShardList, wakeup: &Wakeup, to: State) -> usize {
    // A timer that its owner stopped still becomes abandoned when its runtime goes.
    if lifecycle.advance(to) >= State::Stopped {
        return 0;
    }
    let mut count = 0;
    // The state moves before the shards are listed, see `ShardList::add`.
    for shard in shards.in_use() {
        let wakers = shard.stop();
        count += wakers.len();
        wake_all(wakers.into_iter());
    }
    lifecycle.wake_drains();
    wakeup.wake_task();
    count
}
