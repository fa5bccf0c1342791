/// The methods that a handle and a control share. Each has a `job` and its `key`.
macro_rules! controls {
    () => {
        /// Cancels the job: no run begins any more. `true` if this call did it, so exactly once.
        ///
        /// A job that waits, is queued, is paused or is about to begin ends now with [`Cancelled`](crate::JobError::Cancelled), and its closure is dropped before this returns. A run that goes on is
        /// let finish, and its [token](crate::Context::token) is cancelled. Of a job that runs once, the handle then gives
        /// what the run gave; one that runs again ends with `Cancelled`.
        pub fn cancel(&self) -> bool {
            self.job.table().cancel(self.key)
        }

        /// [`cancel`](Self::cancel), and a run that goes on ends at its next poll: its future is dropped, and the handle gives
        /// [`Cancelled`](crate::JobError::Cancelled). A run on a thread that may block goes on: it can only look at its token.
        ///
        /// `false` if the job has ended already.
        pub fn abort(&self) -> bool {
            self.job.table().abort(self.key)
        }

        /// Lets the job run no more until it is [resumed](Self::resume). A run that goes on is let finish. `false` if the job has ended or is
        /// paused already, if its only run goes on or is about to begin, and after a shutdown.
        ///
        /// A job that stays paused ends with a [shutdown](crate::Scheduler::shutdown).
        pub fn pause(&self) -> bool {
            self.job.table().pause(self.key)
        }

        /// Lets a paused job go on. What came due meanwhile was not missed: a job at a fixed rate, or by the calendar, runs next at its first time that is not past. Other jobs
        /// keep their deadline, and run at once if that is past. `false` if it is not paused.
        pub fn resume(&self) -> bool {
            self.job.table().resume(self.key)
        }

        /// Runs the job now, beside its schedule: the run that it waits for stays where it is, if it is of a fixed rate. A job that runs once has had its
        /// run then. If the job is due already, or waits for a limit on concurrency, its run is about to begin: `true`, and there is no other run.
        ///
        /// `false` if the job has ended or runs, and beyond its [`until`](crate::Repeat::until).
        pub fn trigger_now(&self) -> bool {
            self.job.table().trigger_now(self.key)
        }

        /// Moves the next run to this instant. A fixed rate counts on from there, a calendar from the time that was moved. A paused job stays paused.
        /// `false` if the job has ended, is due or runs, or if the instant is beyond its [`until`](crate::Repeat::until).
        pub fn reschedule_at(&self, deadline: tokio::time::Instant) -> bool {
            self.job.table().reschedule(self.key, deadline)
        }

        /// Moves the next run to `delay` from now. Otherwise as [`reschedule_at`](Self::reschedule_at).
        pub fn reschedule_after(&self, delay: std::time::Duration) -> bool {
            let now = self.job.table().timer.now();
            self.reschedule_at($crate::engine::plan::add(now, delay))
        }

        /// Lets a job that repeats go by this schedule from now on. `false` if the job runs once, has ended, is due or runs, or if the schedule has
        /// no time left. A paused job stays paused.
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

        /// Whether the job runs more than once. `false` when it has ended.
        #[must_use]
        pub fn is_periodic(&self) -> bool {
            self.job.table().is_periodic(self.key)
        }

        /// Whether the job has ended: no run of it goes on or will begin.
        #[must_use]
        pub fn is_done(&self) -> bool {
            self.job.table().is_done(self.key)
        }

        /// Whether the job was cancelled, by a handle or a control, from inside or by a shutdown. A run may go on.
        #[must_use]
        pub fn is_cancelled(&self) -> bool {
            self.job.is_cancelled()
        }

        /// Whether a run of the job goes on: its closure was called.
        #[must_use]
        pub fn is_running(&self) -> bool {
            self.job.table().is_running(self.key)
        }

        /// Whether the job is paused.
        #[must_use]
        pub fn is_paused(&self) -> bool {
            self.job.table().is_paused(self.key)
        }

        /// When the next run is due. `None` while one goes on, if the job is paused, and when it has ended.
        #[must_use]
        pub fn next_run(&self) -> Option<tokio::time::Instant> {
            self.job.table().next_run(self.key)
        }

        /// The time until the next run; zero if it is due. `None` as of [`next_run`](Self::next_run).
        #[must_use]
        pub fn time_left(&self) -> Option<std::time::Duration> {
            let next = self.next_run()?;
            Some(next.saturating_duration_since(self.job.table().timer.now()))
        }

        /// How many runs of the job have ended. A run that is tried again counts once.
        #[must_use]
        pub fn runs(&self) -> u64 {
            self.job.runs()
        }

        /// What the last run that failed said.
        #[must_use]
        pub fn last_error(&self) -> Option<std::sync::Arc<str>> {
            self.job.last_error()
        }
    };
}
pub(super) use controls;
