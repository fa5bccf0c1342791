//! The waker that tokio's clock wakes, by the driver's sleep or by a nudge. It takes the first turn after the sleep on the spot,
//! and wakes the driver's task if that leaves something to do.
//!
//! tokio wakes its own sleeps before the code that moved a paused clock goes on. The driver's task would run only later. And
//! what tokio's clock wakes is queued before any other worker is notified. What a task wakes is announced one by one: a worker
//! that has nothing else to do takes each, and sleeps again. (10 000 intervals of 100 ms, spread over 10 ms: 60 context switches
//! a millisecond without the first turn, 9 with it.)

use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use super::all_shards::Workspace;
use super::allowance::Waiting;
use crate::driver::shard::ShardList;
use crate::driver::wakeup::{Wakeup, is_wakeup_thread};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

pub(super) struct FirstTurn {
    /// Weak, since tokio holds the waker for as long as its timer lies ahead, and a timer may end before.
    wakeup: Weak<Wakeup>,
    list: Arc<ShardList>,
    /// `None` while a thread takes a first turn.
    workspace: Mutex<Option<Workspace>>,
    /// Whether a first turn has left timers that are due, since the driver last asked.
    has_left_timers: AtomicBool,
}

impl FirstTurn {
    /// The first turns of a driver, which tokio's clock wakes from now on.
    pub(super) fn of(wakeup: &Arc<Wakeup>, list: &Arc<ShardList>) -> Arc<FirstTurn> {
        let first_turn = Arc::new(FirstTurn {
            wakeup: Arc::downgrade(wakeup),
            list: Arc::clone(list),
            workspace: Mutex::new(Some(Workspace::new())),
            has_left_timers: AtomicBool::new(false),
        });
        wakeup.set_first_turn(Waker::from(Arc::clone(&first_turn)));
        first_turn
    }

    /// Whether a first turn has left timers that are due, since this was last asked.
    pub(super) fn has_left_timers(&self) -> bool {
        // Relaxed: the wake of the driver's task follows the store in `take`, and orders the two.
        self.has_left_timers.swap(false, Ordering::Relaxed)
    }

    /// Takes a turn. `true` if the driver's task need not run: tokio's sleep alone wakes it, and is set for the next turn.
    fn take(&self, wakeup: &Wakeup) -> bool {
        // The wake-up thread takes no turn, which may take long. And tokio may wake this waker while this thread sets the
        // sleep, with that lock held: no waker of a future may be woken there.
        if is_wakeup_thread() || wakeup.is_setting_tokio_sleep() {
            return false;
        }
        let Some(mut workspace) = self.workspace.lock().take() else {
            return false;
        };
        let waiting = Waiting::SinceTarget(wakeup.slept_until());
        let now = workspace.turn(&self.list, wakeup, waiting);
        let may_sleep = if wakeup.is_tokio_sleep_alone() {
            workspace.end_turn(&self.list, wakeup, now).is_some()
        } else {
            workspace.give_back();
            false
        };
        *self.workspace.lock() = Some(workspace);
        let needs_no_task = may_sleep && wakeup.set_tokio_sleep();
        if !needs_no_task {
            self.has_left_timers.store(true, Ordering::Relaxed);
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
