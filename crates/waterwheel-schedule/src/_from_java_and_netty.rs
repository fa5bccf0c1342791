//! # Coming from Java or Netty
//!
//! ## `ScheduledThreadPoolExecutor`
//!
//! | Java | here | what differs |
//! |---|---|---|
//! | `schedule(callable, delay)` | [`after(delay).run(job)`](crate::Scheduler::after) | the job is an async closure; one that blocks: [`run_blocking`](crate::Once::run_blocking) |
//! | `scheduleAtFixedRate(run, first, period)` | [`every(period).first_after(first).run(job)`](crate::Scheduler::every) | missed runs are skipped; Java's way is [`Missed::CatchUp`](crate::Missed::CatchUp). Without `first_after`, the first run is one period from now |
//! | `scheduleWithFixedDelay(run, first, delay)` | [`with_delay(delay)`](crate::Scheduler::with_delay) | |
//! | `corePoolSize` | [`Builder::concurrency`](crate::Builder::concurrency), [`Scheduler::group`](crate::Scheduler::group) | the number of jobs that run at a time; the threads are tokio's |
//! | `ScheduledFuture.get` | `handle.await` | a `Result`: cancelled, failed, panicked, timed out and shut down are distinct |
//! | `cancel(false)`, `cancel(true)` | [`cancel`](crate::JobHandle::cancel), [`abort`](crate::JobHandle::abort) | there is no interrupt: the run's [token](crate::Context::token) is cancelled, and `abort` drops its future |
//! | `getDelay`, `isDone`, `isCancelled`, `isPeriodic` | [`time_left`](crate::JobHandle::time_left), [`is_done`](crate::JobHandle::is_done), [`is_cancelled`](crate::JobHandle::is_cancelled), [`is_periodic`](crate::JobHandle::is_periodic) | also [`pause`](crate::JobHandle::pause), [`trigger_now`](crate::JobHandle::trigger_now), [`reschedule_at`](crate::JobHandle::reschedule_at) |
//! | `setRemoveOnCancelPolicy(true)` | always | a cancelled job leaves at once, with its closure |
//! | an exception ends a periodic task | [`OnError::End`](crate::OnError::End), the default | or [`Continue`](crate::OnError::Continue), or [`BackOff`](crate::OnError::BackOff) |
//! | `shutdown`, and its two policies | [`shutdown`](crate::Scheduler::shutdown), [`keep_delayed`](crate::Scheduler::keep_delayed), [`keep_periodic`](crate::Scheduler::keep_periodic) | paused jobs end |
//! | `shutdownNow` | [`shutdown_now`](crate::Scheduler::shutdown_now) | the handles of what never ran give an error; Java's `get` waits for ever. Nothing begins after it has returned, as in Java |
//! | `awaitTermination`, `close` | [`await_termination`](crate::Scheduler::await_termination), [`drain`](crate::Scheduler::drain) | |
//! | `getQueue`, `getActiveCount`, `getCompletedTaskCount` | [`jobs`](crate::Scheduler::jobs), [`counts`](crate::Scheduler::counts) | jobs have names |
//! | `RejectedExecutionException` | [`SubmitError`](crate::SubmitError), by the `try_` forms | also for [`max_pending`](crate::Builder::max_pending) |
//!
//! What `java.util.Timer` does besides is not copied: one thread for all, an exception that ends every task, delays by the wall clock.
//!
//! ## Netty's `HashedWheelTimer`
//!
//! | Netty | here | what differs |
//! |---|---|---|
//! | `newTimeout(task, delay)` | [`after(delay).run(job)`](crate::Scheduler::after) | the job may await |
//! | `tickDuration`, `ticksPerWheel` | [`waterwheel::Builder::resolution`] | the wheel is hierarchical, and idle time costs nothing |
//! | `Timeout.cancel`, `isCancelled`, `isExpired` | [`cancel`](crate::JobHandle::cancel), [`is_cancelled`](crate::JobHandle::is_cancelled), [`is_done`](crate::JobHandle::is_done) | |
//! | `maxPendingTimeouts` | [`max_pending`](crate::Builder::max_pending) | the count is exact |
//! | `stop()` | [`shutdown_now`](crate::Scheduler::shutdown_now) | it may be called from inside a job |
//! | — | [`every`](crate::Scheduler::every), [`with_delay`](crate::Scheduler::with_delay) | Netty has no periodic timeouts |
