//! How the schedulers of Java and Netty map to this crate: `ScheduledThreadPoolExecutor`, Quartz, and `HashedWheelTimer`.
//!
//! ## `ScheduledThreadPoolExecutor`
//!
//! | Java | here | what differs |
//! |---|---|---|
//! | `schedule(callable, delay)` | [`after(delay).run(job)`](crate::Scheduler::after) | the job is an async closure; for a blocking one: [`run_blocking`](crate::Once::run_blocking) |
//! | `scheduleAtFixedRate(run, first, period)` | [`every(period).first_after(first).run(job)`](crate::Scheduler::every) | missed runs are skipped; Java runs all of them: [`Misfire::CatchUp`](crate::Misfire::CatchUp). Without `first_after`, the first run is one period from now |
//! | `scheduleWithFixedDelay(run, first, delay)` | [`with_delay(delay).first_after(first).run(job)`](crate::Scheduler::with_delay) | without `first_after`, the first run is one delay from now |
//! | `corePoolSize` | [`Builder::concurrency`](crate::Builder::concurrency), [`Scheduler::group`](crate::Scheduler::group) | limits how many jobs run at the same time; the threads are tokio's |
//! | `ScheduledFuture.get` | `handle.await` | a `Result`, which distinguishes cancelled, failed, panicked, timed out and shut down |
//! | `cancel(false)` | [`cancel`](crate::JobHandle::cancel) | the handle waits for the end of a run in progress, see below |
//! | `cancel(true)` | [`abort`](crate::JobHandle::abort) | there is no interrupt: the [token](crate::Context::token) of the run is cancelled, and its future is dropped |
//! | `Thread.isInterrupted` | [`Context::cancelled`](crate::Context::cancelled), [`Context::token`](crate::Context::token) | also after `cancel`, a time limit and `shutdown_now` |
//! | `getDelay` | [`time_left`](crate::JobHandle::time_left) | |
//! | `isDone` | [`is_done`](crate::JobHandle::is_done) | `false` until a run in progress has ended; [`JobControl::ended`](crate::JobControl::ended) waits for it |
//! | `isCancelled`, `isPeriodic` | [`is_cancelled`](crate::JobHandle::is_cancelled), [`is_periodic`](crate::JobHandle::is_periodic) | |
//! | – | [`pause`](crate::JobHandle::pause), [`trigger_now`](crate::JobHandle::trigger_now), [`reschedule_at`](crate::JobHandle::reschedule_at) | |
//! | `setRemoveOnCancelPolicy(true)` | always | a cancelled job leaves at once, with its closure |
//! | an exception ends a periodic task | [`OnError::End`](crate::OnError::End), the default | alternatives: [`Continue`](crate::OnError::Continue), [`Backoff`](crate::OnError::Backoff) |
//! | `shutdown` and its two policies | [`shutdown`](crate::Scheduler::shutdown), [`keep_delayed`](crate::Scheduler::keep_delayed), [`keep_periodic`](crate::Scheduler::keep_periodic) | paused jobs end |
//! | `shutdownNow` | [`shutdown_now`](crate::Scheduler::shutdown_now) | the handles of jobs that never ran yield an error; Java's `get` waits forever. As in Java, nothing begins after it has returned |
//! | `awaitTermination`, `close` | [`await_termination`](crate::Scheduler::await_termination), [`drain`](crate::Scheduler::drain) | |
//! | `getQueue`, `getActiveCount`, `getCompletedTaskCount` | [`jobs`](crate::Scheduler::jobs), [`counts`](crate::Scheduler::counts) | jobs have names |
//! | `RejectedExecutionException` | [`SubmitError`](crate::SubmitError), from the `try_` methods | also for [`max_pending`](crate::Builder::max_pending) |
//!
//! ### A handle that is cancelled during a run waits for the end of that run
//!
//! In Java, `cancel` completes the future immediately: `get` throws `CancellationException` and `isDone` is true, even
//! while the task is still running. Here [`cancel`](crate::JobHandle::cancel) lets the run finish, and the handle
//! completes only then. Until then, [`is_cancelled`](crate::JobHandle::is_cancelled) is `true` and
//! [`is_done`](crate::JobHandle::is_done) is `false`. The handle of a job that runs once then yields the result of the
//! run, and the handle of a job that would have run again yields [`JobError::Cancelled`](crate::JobError::Cancelled).
//!
//! To wait less, let the run watch for its [cancellation](crate::Context::cancelled), or call [`abort`](crate::JobHandle::abort),
//! which drops its future at the next poll. A blocking run cannot be aborted, so its handle always waits for its end.
//!
//! ### `java.util.Timer`
//!
//! Three of its properties are deliberately not copied: one thread for all tasks, an exception that ends every task, and delays that follow
//! the wall clock. A job that should follow the wall clock uses [`at_wall`](crate::Scheduler::at_wall).
//!
//! ## Quartz
//!
//! Jobs live in memory, as with Quartz's `RAMJobStore`: they do not survive a restart, and are not shared by the nodes
//! of a cluster. Cron needs the feature `cron`.
//!
//! | Quartz | here | what differs |
//! |---|---|---|
//! | `CronTrigger`, `inTimeZone` | `Scheduler::cron(expression, zone)` | the expression: see below |
//! | `SimpleTrigger` with an interval | [`every`](crate::Scheduler::every) | [`max_runs`](crate::Repeat::max_runs) counts the first run as well, `repeatCount` does not |
//! | `endAt` | [`until`](crate::Repeat::until) | |
//! | misfire instruction | [`Repeat::misfire`](crate::Repeat::misfire) | see below |
//! | `@DisallowConcurrentExecution` | always | runs of one job never overlap |
//! | `threadCount` | [`Builder::concurrency`](crate::Builder::concurrency), [`Scheduler::group`](crate::Scheduler::group) | no limit by default |
//! | `pauseJob`, `resumeJob` | [`pause`](crate::JobHandle::pause), [`resume`](crate::JobHandle::resume) | what came due during the pause is not a misfire |
//! | `triggerJob` | [`trigger_now`](crate::JobHandle::trigger_now) | adds no run if one is due or in progress |
//! | `rescheduleJob` | [`reschedule_at`](crate::JobHandle::reschedule_at), `reschedule_by_calendar` | |
//! | `deleteJob` | [`cancel`](crate::JobHandle::cancel) | |
//! | `interrupt` | [`abort`](crate::JobHandle::abort) | ends the job as well; a blocking run can only watch its [token](crate::Context::token) |
//! | `JobKey` | [`JobId`](crate::JobId), [`Scheduler::job`](crate::Scheduler::job) | the scheduler gives the id; names need not be unique |
//! | `CronExpression.isSatisfiedBy` | `Schedule::matches` | to the nanosecond, not to the second |
//! | `getScheduledFireTime` | [`Context::scheduled`](crate::Context::scheduled), [`Context::scheduled_wall`](crate::Context::scheduled_wall) | |
//! | `JobListener`, `TriggerListener` | [`Builder::on_event`](crate::Builder::on_event) | |
//! | `shutdown(true)` | [`drain`](crate::Scheduler::drain) | jobs that run once still run first, unless [`keep_delayed(false)`](crate::Scheduler::keep_delayed) is set |
//!
//! **Misfires.** Quartz calls a trigger misfired when it is later than `misfireThreshold`, 60 s by default. There is no
//! such threshold here: a late time of a calendar is missed only if the time after it has passed as well, and otherwise
//! its run begins late.
//!
//! | Quartz | here |
//! |---|---|
//! | `MISFIRE_INSTRUCTION_DO_NOTHING` | [`Misfire::Skip`](crate::Misfire::Skip), the default here |
//! | `MISFIRE_INSTRUCTION_FIRE_ONCE_NOW`, the default of a `CronTrigger` | [`Misfire::Once`](crate::Misfire::Once), which coalesces the missed runs |
//! | `MISFIRE_INSTRUCTION_IGNORE_MISFIRE_POLICY` | [`Misfire::CatchUp`](crate::Misfire::CatchUp) |
//! | – | [`Misfire::CatchUpTo`](crate::Misfire::CatchUpTo), the latest n of them |
//!
//! **Cron expressions.** They have five fields, or six with the second first; a year must be allowed by
//! `ScheduleOptions::years`. **The numbers of weekdays differ**: in Quartz 1 is Sunday, here 1 is Monday, so write
//! names such as `MON`. Write `*/15` for `0/15`, `5-59/15` for `5/15`, and two ranges for one that wraps around, such
//! as `FRI-MON`. `L-3` is not supported.
//!
//! ## Netty's `HashedWheelTimer`
//!
//! | Netty | here | what differs |
//! |---|---|---|
//! | `newTimeout(task, delay)` | [`after(delay).run(job)`](crate::Scheduler::after) | the job may await |
//! | `tickDuration`, `ticksPerWheel` | [`waterwheel::Builder::resolution`] | the wheel is hierarchical, and idle time costs nothing |
//! | `Timeout.cancel`, `isCancelled`, `isExpired` | [`cancel`](crate::JobHandle::cancel), [`is_cancelled`](crate::JobHandle::is_cancelled), [`is_done`](crate::JobHandle::is_done) | |
//! | `maxPendingTimeouts` | [`max_pending`](crate::Builder::max_pending) | the count is exact |
//! | `stop()` | [`shutdown_now`](crate::Scheduler::shutdown_now) | may be called from inside a job |
//! | – | [`every`](crate::Scheduler::every), [`with_delay`](crate::Scheduler::with_delay) | Netty has no periodic timeouts |
