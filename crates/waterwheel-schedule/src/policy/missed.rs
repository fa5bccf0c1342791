/// The misfire policy of a repeating job: what happens to the runs that it missed.
///
/// A job at a fixed rate or by the calendar misses runs if one run takes longer than the period, if a concurrency limit
/// holds it up, or if the machine was suspended. Quartz calls this a *misfire*. No policy shifts the grid of a fixed
/// rate: it stays `t0`, `t0 + period`, `t0 + 2 × period`. A job with a fixed delay never misses a run.
///
/// A run that starts late, but before the next one is due, is not missed. At a fixed rate, the run that the job was
/// waiting for is not missed either, however late it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
#[doc(alias = "misfire")]
pub enum Missed {
    /// Skips the missed runs: the next run is at the first time of the grid that is still to come.
    ///
    /// Quartz calls this `MISFIRE_INSTRUCTION_DO_NOTHING`.
    #[default]
    #[doc(alias = "DO_NOTHING")]
    Skip,
    /// Coalesces the missed runs: one run starts immediately and stands for all of them. The run after it is on the grid.
    ///
    /// Quartz calls this `MISFIRE_INSTRUCTION_FIRE_ONCE_NOW`, and `APScheduler` `coalesce`.
    #[doc(alias = "coalesce")]
    #[doc(alias = "FIRE_ONCE_NOW")]
    Once,
    /// Runs the latest of the missed runs, at most this many, one after the other without a pause. By the calendar, at most 100.
    CatchUpTo(u32),
    /// Runs every missed run, one after the other without a pause, as Java's `scheduleAtFixedRate` does.
    ///
    /// Quartz calls this `MISFIRE_INSTRUCTION_IGNORE_MISFIRE_POLICY`.
    #[doc(alias = "IGNORE_MISFIRE_POLICY")]
    CatchUp,
}
