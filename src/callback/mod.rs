//! Callbacks: closures that a [`Timer`](crate::Timer) calls when they are due, by the shape of Netty's `HashedWheelTimer`.
//!
//! For work that no task waits for: a retry, an entry of a cache that expires, an order that is closed unless it is paid. A callback
//! that waits is an entry in the wheel and an allocation; no task waits with it.
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
//! // Sixty are paid.
//! assert!(orders[..60].iter().all(|order| order.cancel()));
//! sleep(Duration::from_secs(1801)).await;
//! assert_eq!(closed.load(Ordering::Relaxed), 40);
//! # }
//! ```
//!
//! # When and where a callback runs
//!
//! It is due as a sleep is ([`time`](crate::time#when-a-timer-is-due)): never early, and with a tick of the timer. The driver then
//! hands it to a task of the timer's own runtime, and does not wait for it. That task is spawned for the first callback that is due, and ends
//! when none is left. It calls one after the other, in order of their ticks, and those of one tick as they were submitted; what it
//! has not been handed yet, it cannot take into account. After 32 it gives way to other tasks. So:
//!
//! - A callback is code of a task: it may call `tokio::spawn`, and must not block. If it blocks, the other callbacks of the
//!   timer wait, but neither the driver nor the timer's futures, as long as the runtime has another worker. For work that blocks,
//!   let it call `tokio::task::spawn_blocking`.
//! - Each run happens before the next one.
//! - No lock is held. A callback may do everything with its timer: submit callbacks, cancel itself (which is too late, and returns
//!   false) and others, stop the timer. Its place of [`max_pending`](crate::Builder::max_pending) is free by then.
//! - On a clock that tokio has paused, the clock does not jump on before the callbacks that are due have run.
//! - [`ManualClock::advance`](crate::ManualClock::advance) returns when all that came due has been handed to the task. The callbacks
//!   have run when the runtime has run the task: await what they do, or [`drain`](crate::Timer::drain) the timer.
//!
//! # Panics
//!
//! A callback that panics, or whose captured values panic as they are dropped, harms neither the timer nor the other callbacks. The
//! panic hook reports it, as for a task of tokio's; with the feature `tracing`, an event of the level ERROR names the timer as well. Its
//! handle says that it is expired.
//!
//! # The end of a timer
//!
//! | | not due | due, has not begun |
//! |---|---|---|
//! | [`shutdown`](crate::Timer::shutdown) | cancelled, the closure dropped | runs |
//! | [`shutdown_now`](crate::Timer::shutdown_now) | cancelled, and returned | cancelled, and returned |
//! | [`drain`](crate::Timer::drain) | waits until it has run or is cancelled | waits until it has run |
//! | the end of the runtime | cancelled, the closure dropped | the same |
//!
//! A callback that has begun runs to its end. From the call of one of the first three on, a callback that submits is refused. The last
//! handle of a `Timer` ends nothing: what was submitted still runs.
//!
//! # From Netty
//!
//! | Netty's `HashedWheelTimer` | here | what differs |
//! |---|---|---|
//! | `newTimeout(task, delay, unit)` | [`Timer::call_after`](crate::Timer::call_after), [`call_at`](crate::Timer::call_at) | the deadline is rounded up to a tick, and never early |
//! | `RejectedExecutionException` of `maxPendingTimeouts` | [`try_call_after`](crate::Timer::try_call_after): [`Error::is_at_capacity`](crate::error::Error::is_at_capacity) | the bound counts futures too, and a place is free at once after a cancel, not at the next tick |
//! | `IllegalStateException`: cannot be started once stopped | the same: [`Error::is_shutdown`](crate::error::Error::is_shutdown) | a timer is started when it is built |
//! | `Timeout.cancel()` | [`TimeoutHandle::cancel`] | the closure is dropped at once, not at the next tick |
//! | `isExpired()`, `isCancelled()` | [`is_expired`](TimeoutHandle::is_expired), [`is_cancelled`](TimeoutHandle::is_cancelled) | none |
//! | `task()`, `timer()` | none | the closure captures what it needs |
//! | `stop()`, which returns the unprocessed timeouts | [`Timer::shutdown_now`](crate::Timer::shutdown_now), which returns the closures | it waits for no thread |
//! | `stop()` within a task: `IllegalStateException` | allowed | that callback runs on, and the rest is returned to it |
//! | `pendingTimeouts()` | [`Metrics::pending`](crate::Metrics::pending) | counts futures too, and not what is due |
//! | tasks run on the timer's thread, or on a `taskExecutor` | on a task of the runtime; for more at a time, `tokio::spawn` from within | a slow one delays no other timer |
//! | a task that throws: a warning in the log | the panic hook, and an event of `tracing` | none |
//! | a tick each 100 ms, also with nothing to do | no ticking: the driver sleeps until the next deadline | ticks are 100 µs or [what is set](crate::Builder::resolution) |
//! | `ticksPerWheel`, `tickDuration` | [`Builder::resolution`](crate::Builder::resolution) | a far deadline costs no rounds: there are dials up to days |
//! | more than 64 instances: an error in the log, once | an event of the level WARN, once, with the feature `tracing` | counts timers of one's own that have a handle |
//! | leak detection: a timer that was not stopped | left out | a timer needs no stop: its driver ends with the last handle and the last timer that is pending. What `std::mem::forget` leaks is not seen |
//!
//! # Costs
//!
//! | | |
//! |---|---|
//! | `call_after` | O(1): an allocation, the lock of the thread's shard, and a counter that all threads share |
//! | `cancel` | O(1): the lock of the shard, and that counter |
//! | a callback that is due | the lock of the queue twice, O(log n) of n that are due; the task is spawned once for all that are due |
//! | memory | about 150 bytes beside the closure, the entry in the wheel included |
//! | a timer without callbacks | nothing |
//!
//! # Where the idea is from
//!
//! Netty's `HashedWheelTimer`; the table of ends from `java.util.concurrent`.

mod call;
mod handle;
#[cfg(all(test, waterwheel_loom))]
mod models;
mod runner;
mod start;
mod unrun;

pub use handle::TimeoutHandle;
pub use unrun::Unrun;
