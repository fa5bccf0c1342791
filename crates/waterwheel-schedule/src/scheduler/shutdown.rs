//! Shutting a scheduler down.

use std::time::Duration;

use super::Scheduler;
use crate::engine::table::Phase;
use crate::info::JobInfo;

impl Scheduler {
    /// Begins a graceful shutdown: the scheduler accepts no new jobs and ends when the last of its jobs has ended.
    ///
    /// By default, jobs that run once still run, while repeating jobs end immediately, or after the run in progress.
    /// This is Java's `shutdown`, and its two policies are [`keep_delayed`](Scheduler::keep_delayed) and
    /// [`keep_periodic`](Scheduler::keep_periodic). Paused jobs end, since they would never run.
    /// [`drain`](Scheduler::drain) also waits for the end.
    ///
    /// Once this call has returned, no run begins that the policies do not keep, not even one that was due and waiting
    /// for its task. A run whose closure another thread was about to call counts as begun. A submission that races with
    /// the call is either accepted or refused. A second call does nothing.
    #[doc(alias = "graceful shutdown")]
    pub fn shutdown(&self) {
        self.table.shutdown();
    }

    /// Ends every job that is not running and returns a list of them. The scheduler accepts no new jobs.
    ///
    /// Once this call has returned, no run begins, not even of a job that was due and waiting for its task. A job that
    /// is not in the list had its closure called already, or another thread was about to call it;
    /// [`Counts`](crate::Counts) then counts it as running or finished.
    ///
    /// The handles of the returned jobs yield [`JobError::Shutdown`](crate::JobError::Shutdown), whereas in Java they
    /// never complete. Runs in progress are allowed to finish, and their [tokens](crate::Context::token) are cancelled.
    /// A second call returns an empty list.
    pub fn shutdown_now(&self) -> Vec<JobInfo> {
        self.table.shutdown_now()
    }

    /// Sets whether jobs that run once still run after a [`shutdown`](Scheduler::shutdown). The default is `true`.
    ///
    /// This can be changed at any time. After a shutdown, `false` ends these jobs immediately.
    pub fn keep_delayed(&self, keep: bool) {
        let mut state = self.table.state();
        state.keeps_delayed = keep;
        let phase = state.phase;
        drop(state);
        self.shut_down_again(phase);
    }

    /// Sets whether repeating jobs continue after a [`shutdown`](Scheduler::shutdown). The default is `false`.
    ///
    /// This can be changed at any time. After a shutdown, `false` ends these jobs immediately, or after the run in progress.
    pub fn keep_periodic(&self, keep: bool) {
        let mut state = self.table.state();
        state.keeps_periodic = keep;
        let phase = state.phase;
        drop(state);
        self.shut_down_again(phase);
    }

    /// Waits until the scheduler was shut down and its last job has ended. Returns `false` if that takes longer than `limit`.
    ///
    /// This does not shut the scheduler down: if nothing else does, it waits for the whole limit. If the scheduler's
    /// timer was stopped, no limit can be measured, and the method returns immediately.
    pub async fn await_termination(&self, limit: Duration) -> bool {
        if self.is_terminated() {
            return true;
        }
        match self.table.timer.try_timeout(limit, self.terminated()) {
            Ok(terminated) => terminated.await.is_ok(),
            Err(_) => self.is_terminated(),
        }
    }

    /// Shuts the scheduler down gracefully: calls [`shutdown`](Scheduler::shutdown), and waits until the last job has
    /// ended, however long that takes.
    ///
    /// A job that awaits this waits for itself and never finishes.
    #[doc(alias = "graceful shutdown")]
    pub async fn drain(&self) {
        self.shutdown();
        self.terminated().await;
    }

    /// Returns whether the scheduler was shut down. Jobs may still be running.
    #[must_use]
    pub fn is_shutdown(&self) -> bool {
        self.table.state().phase != Phase::Running
    }

    /// Returns whether the scheduler was shut down and its last job has ended.
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        self.table.state().phase == Phase::Terminated
    }

    async fn terminated(&self) {
        // Created before the check, because `notify_waiters` reaches it from its creation on.
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
