//! Runs the due callbacks of a timer: a queue, and a task that is there while the queue has any.

use std::any::Any;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::call::{AnyCall, CANCELLED, EXPIRED, Head};
use crate::Timer;
use crate::clock::Clock;
use crate::driver::{Lifecycle, spawn};
use crate::sync::Mutex;
use crate::sync::isolate;
use crate::wheel::Tick;

/// The number of callbacks that run before the task gives way to others.
const PORTION: usize = 32;

/// A queue that is empty gives back its memory if it is for more than this many callbacks: 32 KiB.
const KEPT: usize = 1024;

/// One a timer, made with its first callback.
///
/// It holds neither the timer nor a shard, so a handle that is kept does not keep them alive.
pub(super) struct Runner {
    clock: Clock,
    pub(super) lifecycle: Arc<Lifecycle>,
    queue: Mutex<Queue>,
    #[cfg(feature = "tracing")]
    name: Option<Box<str>>,
}

#[derive(Default)]
struct Queue {
    due: BinaryHeap<Due>,
    /// A task was spawned, and has not found the queue empty.
    has_task: bool,
    /// The number of running calls of [`Runner::collect`].
    collectors: usize,
    /// For these: what was cut short.
    collected: Vec<Arc<dyn AnyCall>>,
}

struct Due {
    tick: Tick,
    number: u64,
    call: Arc<dyn AnyCall>,
}

impl Runner {
    pub(super) fn new(timer: &Timer) -> Arc<Runner> {
        Arc::new(Runner {
            clock: timer.clock().clone(),
            lifecycle: Arc::clone(timer.lifecycle()),
            queue: Mutex::default(),
            #[cfg(feature = "tracing")]
            name: timer.name().map(Box::from),
        })
    }

    /// Takes a callback whose sleep has woken it: because it is due, or because the timer was stopped.
    pub(super) fn take(self: &Arc<Runner>, call: Arc<dyn AnyCall>) {
        match self.is_cut_short(call.head()) {
            true => self.cut_short(call),
            false => self.push(call),
        }
    }

    /// Whether the timer was stopped, or its runtime ended, before the callback is due.
    ///
    /// A stop moves the state before it wakes what is pending. So of what a stop wakes, nothing is taken for due and run early.
    pub(super) fn is_cut_short(&self, head: &Head) -> bool {
        self.lifecycle.is_stopped_or_over() && !self.clock.is_due(head.deadline, self.clock.now())
    }

    /// Has a callback run that is due.
    pub(super) fn push(self: &Arc<Runner>, call: Arc<dyn AnyCall>) {
        let head = call.head();
        let due = Due {
            tick: self.clock.tick_after(head.deadline),
            number: head.number,
            call,
        };
        let mut queue = self.queue.lock();
        queue.due.push(due);
        let has_task = std::mem::replace(&mut queue.has_task, true);
        // First: on a runtime that is finished the task is dropped inside the call, and locks this.
        drop(queue);
        if !has_task {
            let task = Run {
                runner: Arc::clone(self),
                has_ended: false,
            };
            spawn(self.clock.home(), task);
        }
    }

    /// Ends a callback, and frees what it holds of the timer. Returns whether it had not ended before; then the closure is the
    /// caller's.
    pub(super) fn end(&self, head: &Head, end: u8) -> bool {
        if !head.try_end(end) {
            return false;
        }
        head.release();
        if end == CANCELLED {
            self.lifecycle.end_callback();
        }
        true
    }

    /// Calls `stop`, and returns what did not run because of it: what was not due, and what was due and had not begun. By deadline, and
    /// equal ones by submission.
    pub(super) fn collect(&self, stop: impl FnOnce()) -> Vec<Arc<dyn AnyCall>> {
        self.queue.lock().collectors += 1;
        stop();
        self.cut_short_all();
        let mut queue = self.queue.lock();
        queue.collectors -= 1;
        let mut collected = std::mem::take(&mut queue.collected);
        drop(queue);
        collected.sort_unstable_by_key(|call| (call.head().deadline, call.head().number));
        collected
    }

    /// Cancels what is due and has not begun.
    fn cut_short_all(&self) {
        let due = std::mem::take(&mut self.queue.lock().due);
        for due in due {
            self.cut_short(due.call);
        }
    }

    /// Cancels a callback, since the timer was stopped. Its closure goes to those that collect, or is dropped.
    fn cut_short(&self, call: Arc<dyn AnyCall>) {
        if !self.end(call.head(), CANCELLED) {
            return;
        }
        let mut queue = self.queue.lock();
        if queue.collectors > 0 {
            queue.collected.push(call);
            return;
        }
        drop(queue);
        self.discard(&*call);
    }

    /// Drops the closure of a callback that was cancelled.
    pub(super) fn discard(&self, call: &dyn AnyCall) {
        isolate(|| call.discard(), |payload| self.report(payload));
    }

    /// The callback that is due first.
    fn next(&self) -> Option<Arc<dyn AnyCall>> {
        let mut queue = self.queue.lock();
        if let Some(due) = queue.due.pop() {
            return Some(due.call);
        }
        queue.has_task = false;
        let spare = match queue.due.capacity() > KEPT {
            true => std::mem::take(&mut queue.due),
            false => BinaryHeap::new(),
        };
        // Without the lock: to free much takes long.
        drop(queue);
        drop(spare);
        None
    }

    /// Runs a callback that is due, unless it was cancelled meanwhile.
    fn run(&self, call: &dyn AnyCall) {
        // Before the closure runs its entry and its permit are free, so that it finds room for the next callback.
        if self.end(call.head(), EXPIRED) {
            isolate(|| call.call(), |payload| self.report(payload));
            self.lifecycle.end_callback();
        }
    }

    /// Reports a panic of a closure or its destructor. The panic hook has printed it, but it does not know whose it was.
    #[cfg(feature = "tracing")]
    fn report(&self, payload: &(dyn Any + Send)) {
        let message = payload.downcast_ref::<&str>().copied();
        let message = message.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        tracing::error!(
            timer = self.name.as_deref(),
            panic = message,
            "a callback panicked"
        );
    }

    #[cfg(not(feature = "tracing"))]
    fn report(&self, _: &(dyn Any + Send)) {}
}

/// The task. It ends when the queue is empty.
struct Run {
    runner: Arc<Runner>,
    has_ended: bool,
}

impl Future for Run {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        for _ in 0..PORTION {
            let Some(call) = self.runner.next() else {
                self.has_ended = true;
                return Poll::Ready(());
            };
            self.runner.run(&*call);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Run {
    /// Its runtime has ended: what is left cannot run any more.
    fn drop(&mut self) {
        if !self.has_ended {
            self.runner.queue.lock().has_task = false;
            self.runner.cut_short_all();
        }
    }
}

impl Ord for Due {
    /// The greatest is the one that comes first: the earliest tick, and of one tick the first that was submitted.
    fn cmp(&self, other: &Due) -> Ordering {
        (other.tick, other.number).cmp(&(self.tick, self.number))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::Duration;

    use super::{Run, Runner};
    use crate::Timer;
    use crate::callback::call::Call;
    use crate::tests::current_thread;

    // A runtime that ends drops its tasks in an order of its own. A callback that comes due after that must not wait forever.
    #[test]
    fn a_runner_whose_task_was_dropped_spawns_another() {
        let runtime = current_thread();
        let timer = Timer::builder().start_on(runtime.handle()).unwrap();
        let runner = Runner::new(&timer);
        runner.queue.lock().has_task = true;
        drop(Run {
            runner: Arc::clone(&runner),
            has_ended: false,
        });
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let past = timer.sleep_until(timer.now() - Duration::from_millis(5));
        let call = Call::arm(&runner, 0, past, move || sender.send(()).unwrap());
        assert!(call.is_ok());
        let within = Duration::from_secs(20);
        let ran = runtime.block_on(async { tokio::time::timeout(within, receiver).await });
        assert_eq!(ran, Ok(Ok(())));
    }
}
