//! The operations that the per-operation workloads repeat, and their common parts.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use waterwheel_suite::Metric;

use crate::stage::BATCH;

/// One step of the measured loop, and its preparation.
pub(crate) trait Operation: Send + 'static {
    /// The number of steps after which the task yields.
    const STEPS: usize = BATCH;

    fn once(&mut self, context: &mut Context<'_>);

    /// Makes one of the timers that are pending throughout.
    fn hold_one(&mut self, _: &mut Context<'_>) {}

    /// Whether nothing of the batch is still in progress.
    fn is_settled(&self) -> bool {
        true
    }
}

/// The only metric of such a workload.
pub(crate) const METRICS: &[Metric] = &[Metric::lower(TIME, "ns")];
/// The name of the metric.
pub(crate) const TIME: &str = "one operation, per thread";

/// Long enough that no measured sleep ever ends.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Polls a sleep for real: a sleep that was never polled was never registered.
pub(crate) fn arm(sleep: Pin<&mut impl Future>, context: &mut Context<'_>) {
    assert!(
        sleep.poll(context).is_pending(),
        "a sleep of many seconds is not over at once"
    );
}
