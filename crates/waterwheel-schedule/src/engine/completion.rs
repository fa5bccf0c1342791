//! What follows a run?

use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;
use waterwheel::wheel::Tick;

use super::entry::{Entry, Status};
use super::job::Run;
use super::plan::{NextRun, RunResult};
use super::table::{Phase, Table, wake};
use crate::error::JobError;
use crate::info::Event;

/// How a run has ended.
#[derive(Debug)]
pub(crate) enum RunEnd {
    Succeeded,
    /// With this error.
    Failed(Arc<str>),
    /// By an abort.
    Aborted,
    /// Its runtime ends.
    Dropped,
    /// Its runtime ends, and its closure was not called.
    NeverStarted,
}

/// What follows a run for those outside of the table.
pub(crate) enum AfterRun {
    RunAgain,
    /// The job has ended as its last run did.
    EndWithResult,
    /// The job has ended well, however its last run did.
    EndOk,
    /// The job has ended otherwise.
    EndWithError(JobError),
}

/// What follows a run in the table.
struct NextStep {
    after: AfterRun,
    /// The tick to file the job at. `None` if it is paused, or has ended.
    tick: Option<Tick>,
    /// The time of day that the job waits for.
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
    /// Files the next run, or ends the job. Starts what waited for the permits that are free now. The hook is told of a run
    /// whose beginning is known.
    pub(crate) fn finished(&self, run: &Run, began: Option<Instant>, end: RunEnd) -> AfterRun {
        let took = began.map(|began| (began, self.timer.now()));
        let (mut starts, mut waker, mut removed) = (Vec::new(), None, None);
        let mut guard = self.state();
        let state = &mut *guard;
        let has_begun = !matches!(end, RunEnd::NeverStarted);
        state.counts.finished += u64::from(has_begun);
        state.counts.failed += u64::from(matches!(end, RunEnd::Failed(_)));
        let Some(entry) = state.wheel.get_mut(run.key) else {
            // The runtime is going away, and took the table's jobs.
            state.jobs -= usize::from(has_begun);
            state.counts.ended += u64::from(has_begun);
            return AfterRun::EndWithError(JobError::Shutdown);
        };
        let (group, is_periodic) = (entry.group(), entry.is_periodic());
        let name = self.hook.as_ref().and_then(|_| entry.name().cloned());
        let mut next = match &end {
            RunEnd::Succeeded => self.advance(entry, RunResult::Succeeded),
            RunEnd::Failed(_) => self.advance(entry, RunResult::Failed),
            _ => NextStep::end(AfterRun::EndWithError(ended_from_outside(entry, &end))),
        };
        let is_closing = state.phase != Phase::Running;
        // A job that is paused would keep a shutdown from its end.
        if matches!(next.after, AfterRun::RunAgain)
            && is_closing
            && (next.tick.is_none() || !state.keeps(is_periodic))
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
                waker = self.waker_of_new_wait(state, run.key, tick, next.wall);
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
            // What is queued is dropped as well. To spawn it here would drop it inside of this call, and so on.
            RunEnd::Dropped | RunEnd::NeverStarted => {}
            _ => state.release_permits(group, &mut starts),
        }
        let idle = state.waker_if_idle();
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
                error: end.in_words(),
            });
            if runs > 0 {
                self.report(|| Event::Missed { id, name, runs });
            }
        }
        self.start(starts);
        next.after
    }

    /// Moves an entry on after a run that came to its end.
    fn advance(&self, entry: &mut Entry, ran: RunResult) -> NextStep {
        let (end_reason, pauses) = (entry.end_reason, entry.pause_requested);
        let Some(plan) = entry.plan_mut() else {
            entry.job.count_run();
            return NextStep::end(AfterRun::EndWithResult);
        };
        // The clocks are read for jobs that may run again alone.
        let (now, wall) = (self.timer.now(), self.wall.now(&self.timer));
        let next = plan.after_run(ran, now, wall);
        let is_again = plan.failures > 0;
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
                    // What a failed run said does not matter, if the job was to go on after it.
                    (NextRun::Done, _) if ran == RunResult::Failed => AfterRun::EndOk,
                    (NextRun::Done, _) | (_, None) => AfterRun::EndWithResult,
                    (_, Some(end_reason)) => AfterRun::EndWithError(end_reason.error()),
                });
            }
        };
        if !is_again {
            entry.job.count_run();
        }
        entry.deadline = at;
        if let Some(extras) = &mut entry.extras {
            extras.wall = wall;
        }
        entry.job.expect_another();
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

/// Why a job has ended whose run did not come to its end.
fn ended_from_outside(entry: &Entry, end: &RunEnd) -> JobError {
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
    /// What the event says.
    fn in_words(self) -> Option<Arc<str>> {
        match self {
            RunEnd::Succeeded => None,
            RunEnd::Failed(error) => Some(error),
            RunEnd::Aborted => Some(JobError::Cancelled.to_string().into()),
            RunEnd::Dropped | RunEnd::NeverStarted => Some(JobError::Shutdown.to_string().into()),
        }
    }
}
