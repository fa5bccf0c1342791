//! Callbacks: closures that a [`Timer`](crate::Timer) calls when they are due, modelled on Netty's `HashedWheelTimer`.
//!
//! Use callbacks for work that no task waits for: a retry, a cache entry that expires, an order that is closed unless it is paid.
//! A pending callback is an entry in the wheel and one allocation; it needs no task.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU32, Ordering};
//! use waterwheel::{Duration, Timer, sleep};
//!
//! let timer = Timer::current();
//! let closed = Arc::new(AtomicU32::new(0));
//! let orders: Vec<_> = (0..100)
//!     .map(|_| {
//!         let closed = Arc::clone(&closed);
//!         timer.call_after(Duration::from_secs(1800), move || {
//!             closed.fetch_add(1, Ordering::Relaxed);
//!         })
//!     })
//!     .collect();
//! // 60 orders are paid in time.
//! assert!(orders[..60].iter().all(|order| order.cancel()));
//! sleep(Duration::from_secs(1801)).await;
//! assert_eq!(closed.load(Ordering::Relaxed), 40);
//! # }
//! ```
//!
//! # When and where a callback runs
//!
//! A callback is due like a sleep (see [`time`](crate::time#when-a-timer-is-due)): never early, and at a tick of the timer. The
//! driver then hands it to a task on the timer's runtime, and does not wait for it. This task is spawned for the first callback
//! that is due, and ends when none is left. It calls the callbacks it has been handed one after the other, in order of their
//! ticks, and within one tick in order of submission. After 32 callbacks it yields to other tasks. Therefore:
//!
//! - A callback runs in a task: it may call `tokio::spawn`, and must not block. If it blocks, the other callbacks of the timer
//!   wait; the driver and the timer's futures do not, as long as the runtime has another worker. For blocking work, call
//!   `tokio::task::spawn_blocking` from the callback.
//! - The run of a callback happens before the run of the next one.
//! - No lock is held. A callback may use its timer in any way: submit callbacks, cancel other callbacks or itself (which is too
//!   late, and returns false), or stop the timer. By then its place of [`max_pending`](crate::Builder::max_pending) is free.
//! - A clock that tokio has paused does not advance until the due callbacks have run.
//! - [`ManualClock::advance`](crate::ManualClock::advance) returns when everything that came due has been handed to the task. The
//!   callbacks have run once the runtime has run that task: await their effect, or [`drain`](crate::Timer::drain) the timer.
//!
//! # Panics
//!
//! If a callback panics, or its captured values panic while being dropped, neither the timer nor the other callbacks are
//! affected. The panic hook reports the panic, as for a tokio task; with the feature `tracing`, an ERROR event also names the
//! timer. The handle then counts as expired.
//!
//! # The end of a timer
//!
//! | | not due | due, not started |
//! |---|---|---|
//! | [`shutdown`](crate::Timer::shutdown) | cancelled, closure dropped | runs |
//! | [`shutdown_now`](crate::Timer::shutdown_now) | cancelled and returned | cancelled and returned |
//! | [`drain`](crate::Timer::drain) | waits until it has run or is cancelled | waits until it has run |
//! | end of the runtime | cancelled, closure dropped | cancelled, closure dropped |
//!
//! A callback that has started runs to its end. Once one of the first three has been called, new callbacks are rejected, also
//! when a callback submits them. Dropping the last handle of a `Timer` ends nothing: callbacks that were submitted still run.
//!
//! # Coming from Netty
//!
//! | Netty's `HashedWheelTimer` | waterwheel | difference |
//! |---|---|---|
//! | `newTimeout(task, delay, unit)` | [`Timer::call_after`](crate::Timer::call_after), [`call_at`](crate::Timer::call_at) | the deadline is rounded up to a tick; never early |
//! | `RejectedExecutionException` of `maxPendingTimeouts` | [`try_call_after`](crate::Timer::try_call_after): [`Error::is_at_capacity`](crate::error::Error::is_at_capacity) | the limit includes futures; a cancel frees its place at once, not at the next tick |
//! | `IllegalStateException`: cannot be started once stopped | [`Error::is_shutdown`](crate::error::Error::is_shutdown) | a timer is started when it is built |
//! | `Timeout.cancel()` | [`TimeoutHandle::cancel`] | the closure is dropped at once, not at the next tick |
//! | `isExpired()`, `isCancelled()` | [`is_expired`](TimeoutHandle::is_expired), [`is_cancelled`](TimeoutHandle::is_cancelled) | none |
//! | `task()`, `timer()` | none | the closure captures what it needs |
//! | `stop()`, which returns the unprocessed timeouts | [`Timer::shutdown_now`](crate::Timer::shutdown_now), which returns the closures | does not wait for a thread |
//! | `stop()` within a task: `IllegalStateException` | allowed | that callback runs on, and receives the rest |
//! | `pendingTimeouts()` | [`Metrics::pending`](crate::Metrics::pending) | includes futures, excludes what is due |
//! | tasks run on the timer's thread or a `taskExecutor` | callbacks run on a task of the runtime; for parallel runs, use `tokio::spawn` | a slow callback delays no other timer |
//! | a task that throws: a warning in the log | the panic hook, and a `tracing` event | none |
//! | a tick every 100 ms, even when idle | no ticking: the driver sleeps until the next deadline | ticks are 100 µs, or [as configured](crate::Builder::resolution) |
//! | `ticksPerWheel`, `tickDuration` | [`Builder::resolution`](crate::Builder::resolution) | a far deadline costs no rounds: there are dials up to days |
//! | more than 64 instances: an error in the log, once | a WARN event, once, with the feature `tracing` | counts timers of your own that have a handle |
//! | leak detection for timers that were not stopped | none | a timer need not be stopped: its driver ends with the last handle and the last pending timer; `std::mem::forget` is not detected |
//!
//! # Costs
//!
//! | operation | cost |
//! |---|---|
//! | `call_after` | O(1): one allocation, the lock of the thread's shard, and a counter shared by all threads |
//! | `cancel` | O(1): the lock of the shard, and the same counter |
//! | a callback that comes due | the lock of the queue twice, O(log n) for n due callbacks; one task is spawned for all of them |
//! | memory | about 150 bytes in addition to the closure, including the entry in the wheel |
//! | a timer without callbacks | nothing |
//!
//! # Prior art
//!
//! Netty's `HashedWheelTimer`; the ways to end a timer are those of `java.util.concurrent`.

mod call;
mod handle;
#[cfg(all(test, waterwheel_loom))]
mod models;
mod runner;
mod start;

pub use handle::{TimeoutHandle, Unrun};
