//! A callback that waits: its closure, the sleep towards its deadline, and what has become of it.
//!
//! # One winner
//!
//! ```text
//!            ARMED and DUE            EXPIRED
//!  (made) ─────────────────► (due) ─────────────► the task runs it
//!     │                        │
//!     └────────────┬───────────┘
//!              CANCELLED ─────────────────────────► it never runs
//! ```
//!
//! The state is a set of bits. The thread that submits sets `ARMED` when the sleep is in its place here; the waker of the sleep sets
//! `DUE`. The timer may fire in between, so either may be first. The thread that sets the second of the two hands the callback to
//! the runner. Of `EXPIRED` and `CANCELLED` one alone is ever set, by one read-modify-write: that thread takes the closure.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use tokio::task::coop;
use tokio::time::Instant;

use super::runner::Runner;
use crate::error::Error;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::time::Sleep;

/// The sleep is in its place.
const ARMED: u8 = 1;
/// The sleep has woken its waker.
const DUE: u8 = 2;
/// The callback is running, or has run.
pub(super) const EXPIRED: u8 = 4;
/// The callback was cancelled, and never runs.
pub(super) const CANCELLED: u8 = 8;

/// A callback, and the waker of its sleep.
pub(super) struct Call<F> {
    head: Head,
    /// `None` once it was called or dropped.
    closure: Mutex<Option<F>>,
}

/// The part that does not depend on the closure's type.
pub(super) struct Head {
    state: AtomicU8,
    pub(super) deadline: Instant,
    /// Counts the callbacks of a timer, in order of submission.
    pub(super) number: u64,
    /// Holds the entry in the wheel and the permit. `None` before it is in its place, and once it was dropped.
    sleep: Mutex<Option<Sleep>>,
    runner: Arc<Runner>,
}

/// A [`Call`] of a closure of any type.
pub(super) trait AnyCall: Send + Sync {
    fn head(&self) -> &Head;

    /// Calls the closure, if it is still there.
    fn call(&self);

    /// Drops the closure, if it is still there.
    fn discard(&self);
}

impl<F: FnOnce() + Send + 'static> Call<F> {
    /// Arms a callback.
    ///
    /// An error if the timer was stopped meanwhile: then it was not taken, and its closure is dropped. It is cancelled at once if the
    /// runtime of its timer is over for callbacks and the caller is one of its tasks.
    pub(super) fn arm(
        runner: &Arc<Runner>,
        number: u64,
        mut sleep: Sleep,
        closure: F,
    ) -> Result<Arc<dyn AnyCall>, Error> {
        let call = Arc::new(Call {
            head: Head {
                state: AtomicU8::new(0),
                deadline: sleep.deadline(),
                number,
                sleep: Mutex::new(None),
                runner: Arc::clone(runner),
            },
            closure: Mutex::new(Some(closure)),
        });
        let head = &call.head;
        let waker = Waker::from(Arc::clone(&call));
        // Not with the sleep in its place: its lock would be held, and the poll may run foreign code.
        // By `poll_tick`, after which a sleep that is due keeps its permit. Without the caller's budget: to submit is no step of its
        // task.
        let poll = poll_fn(|context| sleep.poll_tick(context));
        let is_due = pin!(coop::unconstrained(poll))
            .poll(&mut Context::from_waker(&waker))
            .is_ready();
        drop(waker);
        *head.sleep.lock() = Some(sleep);
        let before = head.note(if is_due { ARMED | DUE } else { ARMED });
        if is_due || before & DUE != 0 {
            if runner.is_cut_short(head) {
                runner.end(head, CANCELLED);
                // A task of an ending runtime gets a handle that is cancelled, and no error.
                runner.lifecycle.is_open()?;
                runner.discard(&*call);
                return Ok(call);
            }
            runner.push(Arc::clone(&call) as Arc<dyn AnyCall>);
        }
        Ok(call)
    }
}

impl<F: FnOnce() + Send + 'static> AnyCall for Call<F> {
    fn head(&self) -> &Head {
        &self.head
    }

    fn call(&self) {
        // Unlocked first: the closure is not ours.
        let closure = self.closure.lock().take();
        if let Some(closure) = closure {
            closure();
        }
    }

    fn discard(&self) {
        let closure = self.closure.lock().take();
        drop(closure);
    }
}

impl<F: FnOnce() + Send + 'static> Wake for Call<F> {
    fn wake(self: Arc<Self>) {
        // Not if it is not armed yet, nor if it was woken or has ended before.
        if self.head.note(DUE) == ARMED {
            let runner = Arc::clone(&self.head.runner);
            runner.take(self);
        }
    }
}

impl Head {
    /// Whether it runs or has run.
    pub(super) fn is_expired(&self) -> bool {
        self.has(EXPIRED)
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.has(CANCELLED)
    }

    pub(super) fn runner(&self) -> &Runner {
        &self.runner
    }

    /// Sets the bit of an end, unless it has ended. Returns whether it did.
    pub(super) fn try_end(&self, end: u8) -> bool {
        let ends = EXPIRED | CANCELLED;
        let ended = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                (state & ends == 0).then_some(state | end)
            });
        ended.is_ok()
    }

    /// Frees the entry in the wheel, and the permit.
    pub(super) fn release(&self) {
        let sleep = self.sleep.lock().take();
        drop(sleep);
    }

    /// Sets these bits, and returns those from before.
    fn note(&self, bits: u8) -> u8 {
        // Released to the thread that sets the other bit, and acquired from it: it finds the sleep in its place.
        let noted = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                Some(state | bits)
            });
        noted.unwrap_or_else(|state| state)
    }

    fn has(&self, bit: u8) -> bool {
        self.state.load(Ordering::Acquire) & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::Call;

    // The allocation is this, two counts of references, and the closure. The entry in the wheel takes 48 bytes more.
    #[test]
    fn a_callback_takes_few_bytes_beside_its_closure() {
        let empty = size_of::<Call<fn()>>() - size_of::<fn()>();
        assert!(empty <= 88, "{empty}");
        let large = size_of::<Call<[u64; 8]>>();
        assert!(large <= empty + 64 + 8, "{large}");
    }
}
