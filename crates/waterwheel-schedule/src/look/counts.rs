/// The counters of a scheduler, all taken at the same moment. Returned by [`Scheduler::counts`](crate::Scheduler::counts).
///
/// Every accepted job is in exactly one state, so at any moment `submitted` = `pending` + `running` + `cancelled` + `ended`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Jobs that were accepted.
    pub submitted: u64,
    /// Jobs that were refused, after a shutdown or because of `max_pending`.
    pub refused: u64,
    /// Jobs that were ended from outside while they were not running: by a cancel, a shutdown, or the end of the runtime.
    pub cancelled: u64,
    /// All other jobs that have ended: with a run, or because they had no time left to run at.
    pub ended: u64,
    /// Jobs that have not ended and are not running. A job that is due is pending until its closure is called.
    pub pending: u64,
    /// Runs in progress, from the moment that the closure is called.
    pub running: u64,
    /// Runs that have ended, successfully or not. Every attempt of a retried run counts.
    pub finished: u64,
    /// Runs that returned an error, panicked, or exceeded their time limit. Every attempt of a retried run counts.
    pub failed: u64,
    /// Runs that were missed (misfires) and left out under the [`Missed`](crate::Missed) policy.
    #[doc(alias = "misfire")]
    pub missed: u64,
}
