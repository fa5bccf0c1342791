//! Where there is no thread that waits for these clocks: a sleep that looks at them from time to time.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::Sleep;

/// The maximum time between two looks.
const LOOK: Duration = Duration::from_secs(60);

/// A sleep towards the next look, for a deadline that is this far away.
///
/// It uses tokio's timer: once the runtime's own `Timer` was stopped, a sleep of it panics, or is always ready.
pub(super) fn until_next_look(left: Duration) -> Pin<Box<Sleep>> {
    Box::pin(tokio::time::sleep(left.min(LOOK)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LOOK, until_next_look};
    use crate::Instant;

    #[tokio::test(start_paused = true)]
    async fn it_looks_at_the_deadline_or_after_a_minute() {
        for (left, waits) in [(5, 5), (60, 60), (61, 60), (u64::MAX, 60)] {
            let begun = Instant::now();
            until_next_look(Duration::from_secs(left)).await;
            assert_eq!(begun.elapsed(), Duration::from_secs(waits));
        }
        assert_eq!(LOOK, Duration::from_secs(60));
    }
}
