/// The methods that a handle and a control share. Each has a `job`, its `key` and its `id`.
macro_rules! controls {
    () => {
        /// Returns the id of the job, which events and lists show. [`Scheduler::job`](crate::Scheduler::job) finds a job by its id.
        #[must_use]
        pub fn id(&self) -> $crate::info::JobId {
            self.id
        }

        /// Cancels the job: no further run begins. Returns `true` for the call that cancelled it, so exactly once.
        ///
        /// A job that is not running (it is waiting, queued, paused or about to begin) ends now with
        /// [`Cancelled`](crate::JobError::Cancelled), and its closure is dropped before this call returns.
        ///
        /// A run in progress is allowed to finish, and its [token](crate::Context::token) is cancelled. The handle
        /// completes only when that run has ended, whereas Java's `get` throws at once. The handle of a job that runs
        /// once then yields the result of the run; a job that would have run again ends with `Cancelled`. To end the
        /// run as well, call [`abort`](Self::abort).
        pub fn cancel(&self) -> bool {
            self.job.table().cancel(self.key)
        }

        /// Cancels the job like [`cancel`](Self::cancel), and ends a run in progress at its next poll: its future is
        /// dropped, and the handle yields [`Cancelled`](crate::JobError::Cancelled).
        ///
        /// A blocking run continues, since it cannot be stopped from outside; it can only watch its [token](crate::Context::token).
        ///
        /// Returns `false` if the job has already ended.
        pub fn abort(&self) -> bool {
            self.job.table().abort(self.key)
        }

        /// Pauses the job: no run begins until it is [resumed](Self::resume). A run in progress is allowed to finish.
        ///
        /// Returns `false` if the job has ended, was cancelled or is already paused, if its only run is in progress or
        /// about to begin, and after a shutdown. A [shutdown](crate::Scheduler::shutdown) ends jobs that are still
        /// paused.
        pub fn pause(&self) -> bool {
            self.job.table().pause(self.key)
        }

        /// Resumes a paused job. Returns `false` if it is not paused.
        ///
        /// Runs that came due during the pause do not count as missed, so the misfire policy does not apply: a job at a
        /// fixed rate or by the calendar next runs at its first time that has not passed. Other jobs keep their
        /// deadline, and run immediately if that has passed.
        pub fn resume(&self) -> bool {
            self.job.table().resume(self.key)
        }

        /// Runs the job now, in addition to its schedule: a job at a fixed rate or by the calendar keeps the time of
        /// its next run. A job that runs once has then had its run. A paused job stays paused after the run.
        ///
        /// If the job is due already, or is queued for a concurrency limit, its run is about to begin: this returns `true` and adds no run.
        ///
        /// Returns `false` if the job has ended or is running, or if its [`until`](crate::Repeat::until) has passed.
        pub fn trigger_now(&self) -> bool {
            self.job.table().trigger_now(self.key)
        }

        /// Moves the next run to `deadline`. A paused job stays paused.
        ///
        /// After that run, a fixed rate continues from `deadline`, and a calendar from the time that was moved.
        ///
        /// Returns `false` if the job has ended, is due or is running, or if `deadline` is after its [`until`](crate::Repeat::until).
        pub fn reschedule_at(&self, deadline: tokio::time::Instant) -> bool {
            self.job.table().reschedule(self.key, deadline)
        }

        /// Moves the next run to `delay` from now, like [`reschedule_at`](Self::reschedule_at).
        pub fn reschedule_after(&self, delay: std::time::Duration) -> bool {
            let now = self.job.table().timer.now();
            self.reschedule_at($crate::engine::plan::saturating_add(now, delay))
        }

        /// Makes a repeating job follow `schedule` from now on. A paused job stays paused.
        ///
        /// Returns `false` if the job runs once, has ended, is due or is running, or if the schedule has no time left before the job's
        /// [`until`](crate::Repeat::until).
        ///
        /// # Examples
        ///
        /// ```
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// use waterwheel_schedule::Scheduler;
        /// use waterwheel_schedule::calendar::Schedule;
        ///
        /// let scheduler = Scheduler::new();
        /// let report = scheduler.cron("0 9 * * *", "UTC")?.run(|_| async {});
        /// assert!(report.reschedule_by_calendar(Schedule::parse("30 9 * * MON-FRI", "UTC")?));
        /// # Ok(())
        /// # }
        /// ```
        #[cfg(feature = "cron")]
        pub fn reschedule_by_calendar(&self, schedule: $crate::calendar::Schedule) -> bool {
            self.job.table().reschedule_by_calendar(self.key, schedule)
        }

        /// Returns whether the job is a repeating job. `false` once it has ended.
        #[must_use]
        pub fn is_periodic(&self) -> bool {
            self.job.table().is_periodic(self.key)
        }

        /// Returns whether the job has ended: no run is in progress, and none will begin.
        #[must_use]
        pub fn is_done(&self) -> bool {
            self.job.table().is_done(self.key)
        }

        /// Returns whether the job was cancelled: by a handle or a control, from inside, or by a shutdown. A run may still be in progress.
        #[must_use]
        pub fn is_cancelled(&self) -> bool {
            self.job.is_cancelled()
        }

        /// Returns whether a run of the job is in progress, that is, its closure was called.
        #[must_use]
        pub fn is_running(&self) -> bool {
            self.job.table().is_running(self.key)
        }

        /// Returns whether the job is paused.
        #[must_use]
        pub fn is_paused(&self) -> bool {
            self.job.table().is_paused(self.key)
        }

        /// Returns when the next run is due. `None` while a run is in progress, while the job is paused, and once it has ended.
        #[must_use]
        pub fn next_run(&self) -> Option<tokio::time::Instant> {
            self.job.table().next_run(self.key)
        }

        /// Returns the time until the next run, or zero if it is due. `None` whenever [`next_run`](Self::next_run) is.
        #[must_use]
        pub fn time_left(&self) -> Option<std::time::Duration> {
            let next = self.next_run()?;
            Some(next.saturating_duration_since(self.job.table().timer.now()))
        }

        /// Returns how many runs of the job have ended. A run that is retried counts once.
        #[must_use]
        pub fn runs(&self) -> u64 {
            self.job.runs()
        }

        /// Returns the error message of the last run that failed. `None` if no run has failed.
        #[must_use]
        pub fn last_error(&self) -> Option<std::sync::Arc<str>> {
            self.job.last_error()
        }
    };
}
pub(super) use controls;
