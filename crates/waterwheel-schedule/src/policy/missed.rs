/// What becomes of the runs that a job at a fixed rate, or by the calendar, missed: since a run took longer than the period, since the limit on concurrency
/// held it up, or since the machine slept.
///
/// A run that starts late, but before the next one is due, is not missed. At a fixed rate, the run that was waited for is not missed either, however
/// late it starts. In each case the grid stays: `t0`, `t0 + period`, `t0 + 2 ×
/// period`.
///
/// The names of the first two ideas are Java's `scheduleAtFixedRate` and the coalescing of Python's `apscheduler`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Missed {
    /// They are left out: the next run is at the next place of the grid that is after now.
    #[default]
    Skip,
    /// One run stands for all of them, at once. The next is on the grid.
    Once,
    /// The latest of them run, at most so many, one after the other without a pause. By the calendar, at most 100.
    CatchUpTo(u32),
    /// Each runs, one after the other without a pause, as in Java.
    CatchUp,
}
