//! A job, whatever its closure and its result, and its runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use waterwheel::wheel::Key;

use super::table::Table;
use crate::error::JobError;
use crate::info::JobId;

/// What the table knows of a job.
pub(crate) trait Job: Send + Sync {
    fn table(&self) -> &Arc<Table>;

    /// A run as a task of its own.
    fn spawn_run(self: Arc<Self>, run: Run, limit: Option<Duration>, runtime: &Handle);

    /// A run, for a task that there is.
    fn run_future(
        self: Arc<Self>,
        run: Run,
        limit: Option<Duration>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Ends a job that never runs again: drops its closure, and completes its handle.
    fn end(&self, error: JobError);

    /// Ends a job that has had its last run, or none, well.
    fn end_well(&self);

    /// The token of the present run, which a cancel cancels; made when first asked for.
    fn token(&self) -> CancellationToken;

    /// A token that is cancelled when the job has ended: its handle is complete, and its closure is gone. It keeps nothing of the job.
    fn ended(&self) -> CancellationToken;

    /// The job counts as cancelled, and its token is.
    fn mark_cancelled(&self);

    fn is_cancelled(&self) -> bool;

    /// Keeps the run that was admitted from its beginning. `false` if it has begun: its closure was called, or is about to be. One lock decides
    /// between the two, so a run that was withdrawn never begins.
    fn withdraw(&self) -> bool;

    /// Whether the run that was admitted last has begun.
    fn has_begun(&self) -> bool;

    /// The run is over, and another one follows, which has not begun.
    fn expect_another(&self);

    /// A run has ended, and is not tried again.
    fn count_run(&self);

    /// How many runs have ended.
    fn runs(&self) -> u64;

    /// Lets the run that goes on end at its next poll.
    fn abort(&self);

    fn set_last_error(&self, error: Arc<str>);

    fn last_error(&self) -> Option<Arc<str>>;
}

/// Which run it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) id: JobId,
    pub(crate) key: Key,
    pub(crate) scheduled: Instant,
    pub(crate) number: u64,
    pub(crate) attempt: u32,
}

/// A run that may start.
pub(crate) struct AdmittedRun {
    pub(crate) job: Arc<dyn Job>,
    pub(crate) run: Run,
    /// The longest that the run may take.
    pub(crate) limit: Option<Duration>,
}

/// A token of what has happened already.
pub(super) fn cancelled_token() -> CancellationToken {
    let token = CancellationToken::new();
    token.cancel();
    token
}
