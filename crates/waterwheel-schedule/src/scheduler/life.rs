use std::time::Duration;

use super::Scheduler;
use crate::engine::table::Phase;
use crate::look::JobInfo;

/// How it ends.
impl Scheduler {
    /// Takes nothing new from now on. By default, jobs that run once still run, and those that run more than once end now, or after their present run. So Java's
    /// `shutdown`; its two policies are [`keep_delayed`](Scheduler::keep_delayed) and [`keep_periodic`](Scheduler::keep_periodic).
    ///
    /// When it has returned, no run begins that these policies do not keep, not even one that was due and waited for its task; a run whose closure another
    /// thread was about to call counts as begun. Paused jobs end: they would never run. Submissions race with it cleanly: each is taken as a whole or
    /// refused. A second call does nothing.
    pub fn shutdown(&self) {
        self.table.shutdown();
    }

    /// Ends every job that does not run, and returns what these were. Takes nothing new.
    ///
    /// When it has returned, no run begins, not even of a job that was due and waited for its task. Each job is returned, or its closure had been called, or
    /// another thread was about to call it; [`Counts`](crate::Counts) have it as running or finished then.
    ///
    /// The handles of what it returns give [`JobError::Shutdown`](crate::JobError::Shutdown) (Java's never end). Runs that go on are let finish, and their
    /// [tokens](crate::Context::token) are cancelled. A second call returns nothing.
    pub fn shutdown_now(&self) -> Vec<JobInfo> {
        self.table.shutdown_now()
    }

    /// Whether jobs that run once still run after a [`shutdown`](Scheduler::shutdown); by default yes. It can be changed at any time: said after
    /// a shutdown, `false` ends them now.
    pub fn keep_delayed(&self, keep: bool) {
        let mut state = self.table.state();
        state.keeps_delayed = keep;
        let phase = state.phase;
        drop(state);
        self.shut_down_again(phase);
    }

    /// Whether jobs that run more than once go on after a [`shutdown`](Scheduler::shutdown); by default no. It can be changed at any time.
    pub fn keep_periodic(&self, keep: bool) {
        let mut state = self.table.state();
        state.keeps_periodic = keep;
        let phase = state.phase;
        drop(state);
        self.shut_down_again(phase);
    }

    /// Waits until the scheduler was shut down and its last job has ended. `false` if that takes longer than `limit`.
    ///
    /// Without a shutdown, it waits for one. A timer that is stopped measures no limit: then this says at once whether it has ended.
    pub async fn await_termination(&self, limit: Duration) -> bool {
        if self.is_terminated() {
            return true;
        }
        match self.table.timer.try_timeout(limit, self.terminated()) {
            Ok(terminated) => terminated.await.is_ok(),
            Err(_) => self.is_terminated(),
        }
    }

    /// [`shutdown`](Scheduler::shutdown), and waits until the last run has ended, however long that takes. A job that awaits it waits for itself, for ever.
    pub async fn drain(&self) {
        self.shutdown();
        self.terminated().await;
    }

    /// Whether the scheduler was shut down. Jobs may still run.
    #[must_use]
    pub fn is_shutdown(&self) -> bool {
        self.table.state().phase != Phase::Running
    }

    /// Whether the scheduler was shut down, and its last job has ended.
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        self.table.state().phase == Phase::Terminated
    }

    async fn terminated(&self) {
        // Made before the look: `notify_waiters` reaches it from its creation on.
        let terminated = self.table.terminated.notified();
        if !self.is_terminated() {
            terminated.await;
        }
    }

    fn shut_down_again(&self, phase: Phase) {
        if phase == Phase::ShuttingDown {
            self.table.shutdown();
        }
    }
}
