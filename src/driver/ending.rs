//! How a `Timer` ends with its runtime.
//!
//! While a runtime is dropped, tasks that were in the middle of a poll run to their next `.await`. A sleep of tokio's is pending
//! there, and the task is dropped next. When all tasks are gone, tokio ends its clock, which wakes every sleep that is still
//! registered; whoever polls one then, from a thread or another runtime, panics.
//!
//! ```text
//!           drop of the driver's task         tokio's clock ends
//! (running) ────────────────────────► ENDING ───────────────────► OVER
//!                                      │                           │
//!              no driver turns the wheels any more.       the wheels are gone.
//!              Polls arm and are pending until            Polls panic, `try_` forms
//!              their tick, as ever.                       return errors, streams end.
//! ```
//!
//! Which thread polls cannot be asked: tasks, `spawn_blocking` and tasks of other runtimes all have a task id. So a sleep of tokio's
//! on the home runtime, registered as the driver's task is dropped, tells when the last task has gone. A timer on a manual
//! clock may live on a runtime without `enable_time`, which has no such sleep. It is over as its driver's task is dropped, and each poll
//! finds out whether a worker of the home runtime runs it ([`host::runs_this_task`]).

use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use super::drain::stop_shards;
use super::host;
use super::lifecycle::Lifecycle;
use super::shard::ShardList;
use super::wakeup::Wakeup;
use crate::sync::Mutex;

/// The driver's task is dropped by its runtime. `registration` is dropped when the runtime is over.
pub(super) fn begin<G: Send + 'static>(
    lifecycle: &Arc<Lifecycle>,
    list: &Arc<ShardList>,
    wakeup: &Wakeup,
    registration: Option<G>,
) {
    lifecycle.begin_ending();
    lifecycle.wake_drains();
    let end = Arc::new(EndOfClock {
        lifecycle: Arc::downgrade(lifecycle),
        list: Arc::downgrade(list),
        registration: Mutex::new(registration),
    });
    let sleep = match lifecycle.is_by_hand() {
        true => None,
        false => host::await_end_of_clock(wakeup.clock().home(), Waker::from(Arc::clone(&end))),
    };
    match sleep {
        Some(sleep) => lifecycle.keep_end_of_clock(sleep),
        None => end.wake(),
    }
}

/// Woken when the clock of a runtime ends. Weak, so that a timer whose futures and handles are gone waits for nothing.
struct EndOfClock<G> {
    lifecycle: Weak<Lifecycle>,
    list: Weak<ShardList>,
    registration: Mutex<Option<G>>,
}

impl<G: Send + 'static> Wake for EndOfClock<G> {
    fn wake(self: Arc<Self>) {
        if let (Some(lifecycle), Some(list)) = (self.lifecycle.upgrade(), self.list.upgrade()) {
            if lifecycle.end() {
                stop_shards(&list);
            }
        }
        let registration = self.registration.lock().take();
        // Without the lock: it may hold the last handle of the timer.
        drop(registration);
    }
}
