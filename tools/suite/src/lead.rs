//! How long before the first deadline arming begins: a guess, and twice as long whenever that was too short.

use std::time::Duration;

use waterwheel_suite::Sample;

/// Calls `attempt` with the time that it has to arm everything, until it answers with a sample. Those that were too short
/// count as retaken.
pub(crate) fn long_enough(guess: Duration, attempt: impl Fn(Duration) -> Option<Sample>) -> Sample {
    let (mut lead, mut retaken) = (guess, 0);
    loop {
        if let Some(sample) = attempt(lead) {
            return Sample { retaken, ..sample };
        }
        lead *= 2;
        retaken += 1;
    }
}
