//! The clocks of other systems than Linux: no thread waits for them. Compiled on Linux for the tests alone.

use std::sync::OnceLock;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::waiting::{Face, Timepiece, wall_now};

#[derive(Clone, Copy)]
pub(super) struct Clock(pub(super) Face);

/// The name of a waiting sleep: there is none.
#[derive(Clone, Copy)]
pub(super) enum Key {}

impl Timepiece for Clock {
    type Key = Key;

    fn now(&self) -> Duration {
        match self.0 {
            Face::Wall => wall_now(),
            Face::Boot => since_start(),
        }
    }

    fn insert(&self, _: Duration, _: &Waker) -> Option<Key> {
        None
    }

    fn keep(&self, key: Key, _: &Waker) -> bool {
        match key {}
    }

    fn remove(&self, key: Key) {
        match key {}
    }
}

/// Whether the time in suspension counts depends on the system's `Instant`.
fn since_start() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::Clock;
    use crate::clocks::waiting::Face;
    use crate::clocks::waiting::{Timepiece, Waiting};

    #[tokio::test]
    async fn sleeps_end_without_a_thread_and_not_early() {
        for face in [Face::Wall, Face::Boot] {
            let clock = Clock(face);
            let deadline = clock.now() + Duration::from_millis(20);
            let mut waiting = Waiting::new(clock, deadline);
            poll_fn(|context| waiting.poll(context)).await;
            assert!(clock.now() >= deadline);
        }
    }
}
