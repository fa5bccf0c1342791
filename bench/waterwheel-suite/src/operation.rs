//! The operations that the per-operation workloads repeat, and their common parts.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use waterwheel_suite::Metric;

use crate::stage::BATCH;

/// One step of the measured loop, and what must be there before it.
pub(crate) trait Operation: Send + 'static {
    /// After so many of them the task gives way.
    const STEPS: usize = BATCH;

    fn once(&mut self, context: &mut Context<'_>);

    /// Makes one of the timers that are pending throughout.
    fn hold_one(&mut self, _: &mut Context<'_>) {}

    /// Whether nothing of the batch is still under way.
    fn is_settled(&self) -> bool {
        true
    }
}

/// The one figure of such a workload.
pub(crate) const METRICS: &[Metric] = &[Metric::lower(TIME, "ns")];
/// Its name.
pub(crate) const TIME: &str = "one operation, per thread";

/// Long enough that no measured sleep ever ends.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Polls for real: a sleep that was never polled was never registered.
pub(crate) fn arm(sleep: Pin<&mut impl Future>, context: &mut Context<'_>) {
    assert!(
        sleep.poll(context).is_pending(),
        "a sleep of many seconds is not over at once"
    );
}
