/// How much a scheduler has done, all from one moment. See [`Scheduler::counts`](crate::Scheduler::counts).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Jobs that were taken.
    pub submitted: u64,
    /// Jobs that were refused: after a shutdown, or for `max_pending`.
    pub refused: u64,
    /// Jobs that were cancelled before a run, by their handle or by a shutdown.
    pub cancelled: u64,
    /// Jobs that are there and do not run now.
    pub pending: u64,
    /// Runs that go on now.
    pub running: u64,
    /// Runs that have ended, well or not.
    pub finished: u64,
    /// Runs that gave an error, panicked, or ran out of their time limit.
    pub failed: u64,
    /// Runs that were left out, as [`Missed`](crate::Missed) says.
    pub missed: u64,
}
