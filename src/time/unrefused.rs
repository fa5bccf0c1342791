//! Sleeps for a caller that takes no refusal: code of other crates that has no error for it, and must not panic.

use std::sync::Arc;

use tokio::time::{Duration, Instant};

use super::phase::Lead;
use super::sleep::Sleep;
use crate::Timer;
use crate::driver::Shard;

impl Timer {
    /// [`sleep`](Timer::sleep), or none if the timer's owner drains or stopped it. Where no permit is left, it takes one beyond the bound, as a sleep
    /// does that is reset after completion.
    pub(crate) fn sleep_unless_closed(&self, duration: Duration) -> Option<Sleep> {
        let shard = self.shard_unless_closed()?;
        let now = shard.clock().now();
        Some(Sleep::after(shard, now, duration))
    }

    /// [`sleep_unless_closed`](Timer::sleep_unless_closed), until a deadline.
    pub(crate) fn sleep_until_unless_closed(&self, deadline: Instant) -> Option<Sleep> {
        let shard = self.shard_unless_closed()?;
        Some(Sleep::new(shard, deadline, Lead::UNKNOWN))
    }

    /// The shard for one more sleep, whose permit has been taken.
    fn shard_unless_closed(&self) -> Option<Arc<Shard>> {
        let shard = self.shard();
        if shard.lifecycle().is_closing() {
            return None;
        }
        if let Some(permits) = shard.permits() {
            permits.take();
        }
        Some(Arc::clone(shard))
    }
}

impl Sleep {
    /// Whether it waits by this timer.
    pub(crate) fn is_of(&self, timer: &Timer) -> bool {
        std::ptr::eq(self.lifecycle(), timer.shard().lifecycle())
    }
}
