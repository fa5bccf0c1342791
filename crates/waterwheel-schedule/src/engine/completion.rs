//! After a run: the next run is filed, or the job ends, and the jobs that waited for its permits start.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;
use waterwheel::wheel::Tick;

use super::plan::{NextRun, RunResult};
use super::table::{Entry, Phase, Run, Status, Table, wake};
use crate::error::JobError;
use crate::info::Event;

/// How a run ended.
#[derive(Debug)]
pub(crate) enum RunEnd {
    Succeeded,
    /// With this error message.
    Failed(Arc<str>),
    Aborted,
    /// The runtime dropped the run as it ended.
    Dropped,
    /// The runtime dropped the run before its closure was called.
    NeverStarted,
}

/// The work that is left for the future of a run once the table is up to date.
pub(crate) enum AfterRun {
    /// Nothing: the job has another run.
    RunAgain,
    /// End the job with the result of the run.
    EndWithResult,
    /// End the job with `Ok(())`, whatever the result of the run.
    EndOk,
    /// End the job with this error.
    EndWithError(JobError),
}

/// The next step of a job in the table.
struct NextStep {
    after: AfterRun,
    /// The tick to file the job at. `None` if the job is paused or has ended.
    tick: Option<Tick>,
    /// The wall-clock time that the job waits for.
    wall: Option<SystemTime>,
    missed: u64,
}

impl NextStep {
    fn end(after: AfterRun) -> NextStep {
        NextStep {
            after,
            tick: None,
            wall: None,
            missed: 0,
        }
    }
}

impl Table {
    /// Files the next run or ends the job, and starts the jobs that waited for its permits. The hook is called if the run has `began`.
    pub(crate) fn finished(&self, run: &Run, began: Option<Instant>, end: RunEnd) -> AfterRun {
        let took = began.map(|began| (began, self.timer.now()));
        let (mut starts, mut waker, mut removed) = (Vec::new(), None, None);
        let mut guard = self.state();
        let state = &mut *guard;
        let has_begun = !matches!(end, RunEnd::NeverStarted);
        state.counts.finished += u64::from(has_begun);
        state.counts.failed += u64::from(matches!(end, RunEnd::Failed(_)));
        let Some(entry) = state.wheel.get_mut(run.key) else {
            // The runtime is ending, and the driver has removed all jobs.
            state.jobs -= usize::from(has_begun);
            state.counts.ended += u64::from(has_begun);
            return AfterRun::EndWithError(JobError::Shutdown);
        };
        let (group, is_periodic) = (entry.group(), entry.is_periodic());
        let name = self.hook.as_ref().and_then(|_| entry.name().cloned());
        let mut next = match &end {
            RunEnd::Succeeded => self.advance(entry, RunResult::Succeeded),
            RunEnd::Failed(_) => self.advance(entry, RunResult::Failed),
            _ => NextStep::end(AfterRun::EndWithError(error_from_outside(entry, &end))),
        };
        let is_closing = state.phase != Phase::Running;
        // A paused job would keep the shutdown from ending.
        if matches!(next.after, AfterRun::RunAgain)
            && is_closing
            && (next.tick.is_none() || !state.survives_shutdown(is_periodic))
        {
            next.after = AfterRun::EndWithError(JobError::Shutdown);
        }
        state.counts.missed += next.missed;
        match (&next.after, next.tick) {
            (AfterRun::RunAgain, Some(tick))
                if state.is_limited(group) && tick <= self.timer.tick_now() =>
            {
                state.requeue(run.key);
            }
            (AfterRun::RunAgain, Some(tick)) => {
                state.wheel.reset(run.key, tick);
                waker = self.driver_waker_for(state, run.key, tick, next.wall);
            }
            (AfterRun::RunAgain, None) => {}
            _ => {
                removed = state.wheel.cancel(run.key);
                state.jobs -= 1;
                match has_begun {
                    true => state.counts.ended += 1,
                    false => state.counts.cancelled += 1,
                }
            }
        }
        match end {
            // The runtime drops queued jobs as well. Spawning one here would drop it within this call, and so on recursively.
            RunEnd::Dropped | RunEnd::NeverStarted => {}
            _ => state.release_permits(group, &mut starts),
        }
        let idle = state.driver_waker_if_idle();
        drop(guard);
        wake(waker);
        wake(idle);
        drop(removed);
        if let Some((began, ended)) = took {
            let (id, runs) = (run.id, next.missed);
            self.report(|| Event::Finished {
                id,
                name: name.clone(),
                run: run.number,
                scheduled: run.scheduled,
                lateness: began.saturating_duration_since(run.scheduled),
                duration: ended.saturating_duration_since(began),
                error: end.message(),
            });
            if runs > 0 {
                self.report(|| Event::Missed { id, name, runs });
            }
        }
        self.start(starts);
        next.after
    }

    /// Moves an entry on after a run that succeeded or failed.
    fn advance(&self, entry: &mut Entry, ran: RunResult) -> NextStep {
        let (end_reason, pauses) = (entry.end_reason, entry.pause_requested);
        let Some(plan) = entry.plan_mut() else {
            entry.job.count_run();
            return NextStep::end(AfterRun::EndWithResult);
        };
        // Jobs that run once need no clock.
        let (now, wall) = (self.timer.now(), self.wall.now(&self.timer));
        let next = plan.after_run(ran, now, wall);
        let is_retry = plan.failures > 0;
        let (at, wall, missed) = match (next, end_reason) {
            (NextRun::At { at, missed }, None) => (plan.with_jitter(at), None, missed),
            #[cfg(feature = "cron")]
            (NextRun::AtWall { wall, missed }, None) => {
                let later = plan.with_jitter_on_wall(wall);
                let is_in_time = plan.allows(self.wall.instant_of(later, &self.timer));
                let wall = if is_in_time { later } else { wall };
                let at = self.wall.instant_of(wall, &self.timer);
                if !plan.allows(at) {
                    entry.job.count_run();
                    return NextStep::end(match ran {
                        RunResult::Succeeded => AfterRun::EndWithResult,
                        RunResult::Failed => AfterRun::EndOk,
                    });
                }
                (at, Some(wall), missed)
            }
            (next, end_reason) => {
                entry.job.count_run();
                return NextStep::end(match (next, end_reason) {
                    (NextRun::Failed, _) => AfterRun::EndWithResult,
                    // The job was to continue after the error, so it does not end with it.
                    (NextRun::Done, _) if ran == RunResult::Failed => AfterRun::EndOk,
                    (NextRun::Done, _) | (_, None) => AfterRun::EndWithResult,
                    (_, Some(end_reason)) => AfterRun::EndWithError(end_reason.error()),
                });
            }
        };
        if !is_retry {
            entry.job.count_run();
        }
        entry.deadline = at;
        if let Some(extras) = &mut entry.extras {
            extras.wall = wall;
        }
        entry.job.prepare_next_run();
        entry.pause_requested = false;
        entry.status = if pauses {
            Status::Paused
        } else {
            Status::Waiting
        };
        NextStep {
            after: AfterRun::RunAgain,
            tick: (!pauses).then(|| self.timer.tick_after(at)),
            wall,
            missed,
        }
    }
}

/// The error of a job whose run was aborted or dropped.
fn error_from_outside(entry: &Entry, end: &RunEnd) -> JobError {
    if matches!(end, RunEnd::Aborted) {
        entry.job.count_run();
    }
    match (end, entry.end_reason) {
        (RunEnd::Dropped | RunEnd::NeverStarted, _) => JobError::Shutdown,
        (_, Some(end_reason)) => end_reason.error(),
        (_, None) => JobError::Cancelled,
    }
}

impl RunEnd {
    /// The error message in the event.
    fn message(self) -> Option<Arc<str>> {
        match self {
            RunEnd::Succeeded => None,
            RunEnd::Failed(error) => Some(error),
            RunEnd::Aborted => Some(JobError::Cancelled.to_string().into()),
            RunEnd::Dropped | RunEnd::NeverStarted => Some(JobError::Shutdown.to_string().into()),
        }
    }
}
