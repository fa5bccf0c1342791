//! Where there is no thread that waits for these clocks: a sleep that looks at them from time to time.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::Sleep;

/// How often at least.
const LOOK: Duration = Duration::from_secs(60);

/// A sleep towards the next look, for a deadline that is so far away.
///
/// It is tokio's. One of the runtime's timer panics, or is ready each time, once that timer was stopped.
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
