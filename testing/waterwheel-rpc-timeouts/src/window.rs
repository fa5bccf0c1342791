//! The measurements: of a slice, and of a run.

use std::time::Duration;

use waterwheel_bench_kit::Quantiles;

use crate::ledger::Tally;

/// The figures of a clock in the counted part of a slice.
pub(crate) struct Window {
    pub(crate) length: Duration,
    pub(crate) tally: Tally,
    /// The CPU time of this clock's threads. `None` if the system does not report it.
    pub(crate) cpu: Option<Duration>,
}

impl Window {
    pub(crate) fn a_second(&self, count: impl Fn(&Tally) -> u64) -> f64 {
        count(&self.tally) as f64 / self.length.as_secs_f64()
    }

    /// The CPU time of a call, in microseconds.
    pub(crate) fn cpu_a_call(&self) -> Option<f64> {
        let calls = Some(self.tally.calls).filter(|&calls| calls > 0)?;
        Some(self.cpu?.as_secs_f64() * 1e6 / calls as f64)
    }

    /// A quantile of the lateness, in milliseconds.
    pub(crate) fn late(&self, quantile: fn(&Quantiles) -> Duration) -> Option<f64> {
        let quantiles = self.tally.lateness.quantiles()?;
        Some(quantile(&quantiles).as_secs_f64() * 1e3)
    }
}

/// The measurements of a run.
pub(crate) struct Course {
    /// The windows of each contestant, in the order of the contestants.
    pub(crate) windows: Vec<Vec<Window>>,
    /// The number of windows that began while calls of the other clock were still in flight.
    pub(crate) overlaps: u32,
}
