//! The tasks that turn one shard: those that futures spawn for a driver that is late, and those to which the driver gives a backlog.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::one_shard::Wakers;
use super::one_shard::{self, Turned};
use super::one_shard::{LONG_WAIT, Waiting};
use crate::driver::host;
use crate::driver::shard::Shard;

/// A shard is given away only while no more tasks than this wait in the queue that all workers take from.
///
/// If more do, the workers are the bottleneck and not the driver. A worker looks at that queue when its own is empty, else at every
/// 61st task. With a shard to turn on each worker, none would be empty, and a heartbeat that spills over would wait there for long.
/// (`benches/LOG.md` has the gap with and without this bound.)
const MOST_QUEUED: usize = 1024;

/// Spawns a task that turns a shard whose driver is late (`clock::LATE`). It serves one batch (`one_shard::catch_up`).
///
/// The driver waits behind all tasks that can run. On a saturated runtime that takes long, and all timers would be that late.
/// Such a runtime arms timers all the time, and each arm is a chance to catch up: what a worker spawns runs next on that
/// worker.
///
/// It is a task, not a call within the poll that arms, because the task being polled may hold a lock that one of the woken wakers wants.
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

/// Gives a shard with a backlog to a task, which turns it until it has none. Returns whether the task has the shard: then the driver
/// leaves it out of its turns, and is woken when the task ends.
///
/// So several workers turn several shards at once. The task turns one batch at a time, as the driver does, and goes behind the tasks
/// that it has woken. If it then has to wait for long, it ends: the driver serves more the longer it had to wait. It does not keep the shard between two batches: a future that finds it late has it turned
/// (`spawn_catch_up`).
#[cold]
pub(super) fn give(shard: &Arc<Shard>) -> bool {
    let home = shard.clock().home();
    if host::queue_length(home) > MOST_QUEUED {
        return false;
    }
    shard.turning.give();
    let task = Backlog {
        shard: Arc::clone(shard),
        gave_way: shard.clock().now(),
        wakers: Wakers::new(),
    };
    host::spawn(home, task);
    true
}

/// The catch-up of a shard that the driver has given away.
struct Backlog {
    shard: Arc<Shard>,
    /// When it last went behind the tasks that it has woken.
    gave_way: Instant,
    wakers: Wakers,
}

impl Backlog {
    /// Turns one batch. Returns whether the task is to go on.
    fn turn(&mut self) -> bool {
        let clock = self.shard.clock();
        let now = clock.now();
        // A batch a round trip is too little then. The driver serves more, by how long it had to wait.
        if now.duration_since(self.gave_way) > LONG_WAIT {
            return false;
        }
        let tick = clock.tick_before(now);
        let allowance = Waiting::Never.allowance(clock, now, tick);
        // If another thread turns the shard, the task ends, and has nothing to wait for: the driver is woken when both have ended.
        one_shard::turn_given(&self.shard, now, tick, allowance, &mut self.wakers)
            == Turned::Backlog
            && host::queue_length(clock.home()) <= MOST_QUEUED
    }
}

impl Future for Backlog {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !self.turn() {
            return Poll::Ready(());
        }
        self.gave_way = self.shard.clock().now();
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        // When the runtime ends too, polled or not.
        if self.shard.turning.give_back() {
            self.shard.wakeup().wake();
        }
    }
}
