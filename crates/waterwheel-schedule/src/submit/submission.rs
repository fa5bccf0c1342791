use std::sync::Arc;

use super::options::Options;
use crate::engine::plan::{Plan, Recurrence, random_jitter, saturating_add};
use crate::engine::table::{Entry, Extras, Job};
use crate::engine::task::{JobCell, TypedJob};
use crate::engine::work::Work;
use crate::error::SubmitError;
use crate::handle::JobHandle;
use crate::policy::{Missed, OnError};

/// A job of any kind, but for its closure.
pub(crate) struct Submission<'a> {
    pub(crate) options: Options<'a>,
    /// `None` for a job that runs once, and is not tried again.
    pub(crate) plan: Option<Plan>,
    /// It has no run at all.
    pub(crate) is_over: bool,
}

impl Submission<'_> {
    /// Submits the job.
    pub(crate) fn submit<W: Work>(self, work: W) -> Result<JobHandle<W::Value>, SubmitError> {
        let (options, plan) = (self.options, self.plan);
        let later = random_jitter(options.jitter);
        let wall = options
            .wall
            .map(|wall| wall.checked_add(later).unwrap_or(wall));
        let deadline = match &plan {
            Some(plan) => {
                plan.delayed_within(options.deadline, saturating_add(options.deadline, later))
            }
            None => saturating_add(options.deadline, later),
        };
        let is_over = self.is_over || plan.as_ref().is_some_and(|plan| !plan.allows(deadline));
        let cell = Arc::new(JobCell::new(Arc::clone(options.table), work));
        let is_plain = options.name.is_none()
            && options.group.is_none()
            && options.time_limit.is_none()
            && options.wall.is_none()
            && plan.is_none();
        let extras = (!is_plain).then(|| {
            Box::new(Extras {
                name: options.name,
                group: options.group,
                plan,
                wall,
                at_wall: options.wall,
                time_limit: options.time_limit,
            })
        });
        let entry = Entry::new(Arc::clone(&cell) as Arc<dyn Job>, deadline, extras);
        let (key, id) = options.table.submit(entry, is_over)?;
        Ok(JobHandle::new(cell as Arc<dyn TypedJob<W::Value>>, key, id))
    }
}

impl Options<'_> {
    /// The plan of a job with this recurrence, and defaults for everything else.
    pub(crate) fn plan(&self, recurrence: Recurrence) -> Plan {
        Plan {
            recurrence,
            missed: Missed::default(),
            on_error: OnError::default(),
            jitter: self.jitter,
            runs_left: None,
            until: None,
            next: self.deadline,
            next_wall: self.wall,
            is_triggered: false,
            failures: 0,
        }
    }
}

/// What an infallible call does with a refusal.
#[track_caller]
pub(crate) fn expect_accepted<T>(submitted: Result<JobHandle<T>, SubmitError>) -> JobHandle<T> {
    match submitted {
        Ok(handle) => handle,
        Err(error) => panic!("{error}; the `try_` form of this method returns an error instead"),
    }
}
