//! How long before the first deadline arming begins: an estimate, doubled as long as it is too short.

use std::time::Duration;

use waterwheel_suite::Sample;

/// Calls `attempt` with the time that it has to arm everything, until it returns a sample. Each time that was too short
/// counts as a retake.
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
