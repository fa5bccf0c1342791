//! The waker that tokio's clock wakes, by the driver's sleep or by a nudge. It takes the first turn after the sleep on the spot,
//! and wakes the driver's task if that leaves something to do. It does so for two reasons:
//!
//! - tokio wakes its own sleeps before the code that moved a paused clock goes on. The driver's task would run only later.
//! - tokio queues all tasks that its clock wakes, and then notifies another worker. For a task that a task wakes, it notifies a
//!   worker at once: an idle worker takes each one, and sleeps again. (`benches/LOG.md` has the
//!   context switches.)

use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use super::all_shards::Workspace;
use super::one_shard::Waiting;
use crate::driver::shard::ShardList;
use crate::driver::wakeup::{Wakeup, is_wakeup_thread};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

pub(super) struct FirstTurn {
    /// Weak: tokio holds the waker as long as its own timer lies ahead, and this `Timer` may end before.
    wakeup: Weak<Wakeup>,
    list: Arc<ShardList>,
    /// `None` while a thread takes a first turn.
    workspace: Mutex<Option<Workspace>>,
    /// Whether a first turn has woken the driver's task, since the task last asked.
    has_woken_task: AtomicBool,
}

impl FirstTurn {
    /// The first turns of a driver, which tokio's clock wakes from now on.
    pub(super) fn of(wakeup: &Arc<Wakeup>, list: &Arc<ShardList>) -> Arc<FirstTurn> {
        let first_turn = Arc::new(FirstTurn {
            wakeup: Arc::downgrade(wakeup),
            list: Arc::clone(list),
            workspace: Mutex::new(Some(Workspace::new(false))),
            has_woken_task: AtomicBool::new(false),
        });
        wakeup.set_first_turn(Waker::from(Arc::clone(&first_turn)));
        first_turn
    }

    /// Whether a first turn has woken the driver's task, since this was last asked: something is left to do, or a wake-up to
    /// arrange. Then the task's turn is not a first one.
    pub(super) fn has_woken_task(&self) -> bool {
        // Relaxed: the wake of the driver's task follows the store in `take`, and orders the two.
        self.has_woken_task.swap(false, Ordering::Relaxed)
    }

    /// Takes a turn. `true` if the driver's task need not run: nothing is left to do, and the next wake-up is arranged.
    fn take(&self, wakeup: &Arc<Wakeup>) -> bool {
        // Not on the watchdog thread: a turn may take long. Not while a thread sets tokio's sleep: it may be this one, which holds
        // the sleep's lock, and a future's waker must not run then.
        if is_wakeup_thread() || wakeup.is_setting_tokio_sleep() {
            return false;
        }
        let Some(mut workspace) = self.workspace.lock().take() else {
            return false;
        };
        // Before the turn: whether it serves in order depends on it.
        wakeup.clock().look_for_pause();
        let waiting = Waiting::SinceTarget(wakeup.slept_towards());
        let now = workspace.turn(&self.list, wakeup, waiting);
        // A target that is set for fewer shards than there are would replace the one that the driver's task has set since for all.
        let may_sleep = if workspace.has_left_out() {
            workspace.clear();
            false
        } else {
            workspace.end_turn(&self.list, wakeup, now)
        };
        *self.workspace.lock() = Some(workspace);
        let needs_no_task = may_sleep && wakeup.arrange();
        if !needs_no_task {
            self.has_woken_task.store(true, Ordering::Relaxed);
        }
        needs_no_task
    }
}

impl Wake for FirstTurn {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(wakeup) = self.wakeup.upgrade() {
            if !self.take(&wakeup) {
                wakeup.wake();
            }
        }
    }
}
