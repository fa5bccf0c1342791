//! How a `Timer` is stopped by its owner, by `shutdown` or a drain: every pending timer ends at once, and its task is woken.

use super::lifecycle::Lifecycle;
use super::shard::ShardList;
use super::wake_all::wake_all;
use super::wakeup::Wakeup;

/// Stops the `Timer`. Returns how many timers were pending; zero if it was stopped before.
pub(super) fn stop(lifecycle: &Lifecycle, shards: &ShardList, wakeup: &Wakeup) -> usize {
    if !lifecycle.stop() {
        return 0;
    }
    let count = stop_shards(shards);
    lifecycle.wake_drains();
    wakeup.wake_task();
    count
}

/// Takes the wheels from the shards, and wakes what was pending. Returns how much that was. The caller has set the state before, see
/// `ShardList::add`.
pub(super) fn stop_shards(shards: &ShardList) -> usize {
    let mut count = 0;
    for shard in shards.in_use() {
        let wakers = shard.stop();
        count += wakers.len();
        wake_all(wakers.into_iter());
    }
    count
}
