use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::JobId;

/// An event in the life of a job, for metrics and logs. [`Builder::on_event`](crate::Builder::on_event) shows how to receive events.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A run starts: its closure is called as soon as the function that receives this event returns. A run that is
    /// cancelled earlier has no events.
    #[non_exhaustive]
    Started {
        /// The job's id.
        id: JobId,
        /// The job's name.
        name: Option<Arc<str>>,
        /// The number of the run, counted from 1.
        run: u64,
        /// When the run was due.
        scheduled: Instant,
    },
    /// A run has ended.
    #[non_exhaustive]
    Finished {
        /// The job's id.
        id: JobId,
        /// The job's name.
        name: Option<Arc<str>>,
        /// The number of the run.
        run: u64,
        /// When the run was due.
        scheduled: Instant,
        /// How late the run started, that is, the time from `scheduled` to its start.
        lateness: Duration,
        /// How long the run took. Like `lateness`, it is measured with the scheduler's timer.
        duration: Duration,
        /// The error message, if the run failed, was aborted, or ended with its runtime.
        error: Option<Arc<str>>,
    },
    /// Runs were missed (a misfire) and left out under the [`Missed`](crate::Missed) policy.
    #[doc(alias = "misfire")]
    #[non_exhaustive]
    Missed {
        /// The job's id.
        id: JobId,
        /// The job's name.
        name: Option<Arc<str>>,
        /// How many runs were left out.
        runs: u64,
    },
    /// A job was refused, after a shutdown or because of `max_pending`.
    #[non_exhaustive]
    Refused {
        /// The job's name.
        name: Option<Arc<str>>,
    },
}

/// The user's function for events.
pub(crate) struct Hook(Box<dyn Fn(&Event) + Send + Sync>);

impl Hook {
    pub(crate) fn new(hook: impl Fn(&Event) + Send + Sync + 'static) -> Hook {
        Hook(Box::new(hook))
    }

    /// A hook that panics harms no job.
    pub(crate) fn call(&self, event: &Event) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.0)(event)));
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}
