use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::time::Instant;

/// What happens to jobs, for metrics and logs. [`Builder::on_event`](crate::Builder::on_event) has a hook for them, and makes a stream of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A run starts: its closure is called as soon as the hook returns. A run that is cancelled before that has no events.
    #[non_exhaustive]
    Started {
        /// The job's name.
        name: Option<Arc<str>>,
        /// The number of the run, from 1 on.
        run: u64,
        /// When it was due.
        scheduled: Instant,
    },
    /// A run has ended.
    #[non_exhaustive]
    Finished {
        /// The job's name.
        name: Option<Arc<str>>,
        /// The number of the run.
        run: u64,
        /// Why it failed, if it did.
        error: Option<Arc<str>>,
    },
    /// Runs were left out, as [`Missed`](crate::Missed) says.
    #[non_exhaustive]
    Missed {
        /// The job's name.
        name: Option<Arc<str>>,
        /// How many.
        runs: u64,
    },
    /// A job was not taken.
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
