//! How a `Timer` ends: every pending timer ends at once, and its task is woken. Its owner stops it by `shutdown` or a drain;
//! the drop of the driver's task (`turn/task`) stops it when its runtime ends.

use super::lifecycle::{Lifecycle, State};
use super::shard::ShardList;
use super::wake_all::wake_all;
use super::wakeup::Wakeup;

/// Moves the `Timer` on to `Stopped` or `Abandoned` and ends everything that is pending. Returns how many timers that
/// were; zero if it was stopped before.
pub(super) fn stop(lifecycle: &Lifecycle, shards: &ShardList, wakeup: &Wakeup, to: State) -> usize {
    // A `Timer` that its owner stopped still becomes abandoned when its runtime ends.
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
