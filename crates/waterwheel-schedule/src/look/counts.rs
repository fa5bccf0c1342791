/// How much a scheduler has done, all from one moment. See [`Scheduler::counts`](crate::Scheduler::counts).
///
/// Each job that was taken is in one place: `submitted` = `pending` + `running` + `cancelled` + `ended`, at every moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Jobs that were taken.
    pub submitted: u64,
    /// Jobs that were refused: after a shutdown, or for `max_pending`.
    pub refused: u64,
    /// Jobs that were ended from outside while they did not run: by a cancel, by a shutdown or by the end of the runtime.
    pub cancelled: u64,
    /// All other jobs that have ended: with a run, or because none of their times was left.
    pub ended: u64,
    /// Jobs that are there and do not run now. One that is due is pending until its closure is called.
    pub pending: u64,
    /// Runs that go on now, from the call of the closure on.
    pub running: u64,
    /// Runs that have ended, well or not.
    pub finished: u64,
    /// Runs that gave an error, panicked, or ran out of their time limit.
    pub failed: u64,
    /// Runs that were left out, as [`Missed`](crate::Missed) says.
    pub missed: u64,
}
