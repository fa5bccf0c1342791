use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::one_shard;
use crate::driver::host;
use crate::driver::shard::Shard;

/// Spawns a task that turns a shard whose driver is late (`clock::LATE`). It serves one batch (`one_shard::catch_up`).
///
/// The driver waits behind all tasks that can run. On a saturated runtime that takes long, and all timers would be that late.
/// Such a runtime arms timers all the time, and each arm is a chance to catch up: what a worker spawns runs next on that
/// worker. (With `rpc_timeouts --connections 1000 --concurrency 50`, on two cores, the median lateness of a timeout is 111 ms
/// without this task and 2.0 ms with it; with tokio 1.6 ms.)
///
/// It is a task, and not a call within the poll that arms, because the task that polls may hold a lock that one of the woken
/// wakers wants.
#[cold]
pub(crate) fn spawn_catch_up(shard: &Arc<Shard>) {
    let task = CatchUp(Arc::clone(shard));
    host::spawn(shard.clock().home(), task);
}

struct CatchUp(Arc<Shard>);

impl Future for CatchUp {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        one_shard::catch_up(&self.0, self.0.clock().now());
        Poll::Ready(())
    }
}

impl Drop for CatchUp {
    fn drop(&mut self) {
        // Polled or not: the next future that finds the shard overdue spawns another. Nothing of the wheel has changed, so no
        // drain is waiting for this lock.
        self.0.lock().has_catch_up = false;
    }
}
