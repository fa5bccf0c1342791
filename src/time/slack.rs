//! Slack: lateness that the owner of a timer allows, so that timers come due together.
//!
//! A deadline with slack is moved up to the next line of a grid that all timers share. So what is due within some milliseconds is due at
//! one tick. The wheel knows nothing of it. (Linux has slack for its timers as well, and coalesces on a grid where it rounds
//! jiffies to whole seconds.)

use std::sync::Arc;

use tokio::time::Duration;

use super::sleep::Sleep;
use super::start::expect;
use crate::Timer;
use crate::error::Error;

impl Timer {
    /// Waits until at least `min` has passed, and lets the timer choose the moment after that, `max` from now at the latest.
    ///
    /// This is [`sleep`](Timer::sleep) with a slack of `max - min`.
    ///
    /// The deadline is moved up to the next multiple of 1, 2, 5, 10, 20, 50, 100, 200 or 500 ms, or of 1, 5, 15 or 60 s: the
    /// coarsest of these that is not longer than the slack. The multiples are counted from an instant that all timers of the
    /// process share, so that timers with similar deadlines fire together, which takes less CPU. On a
    /// [`ManualClock`](crate::ManualClock) they are counted from the start of the clock, and on a clock that tokio can pause from
    /// the start of the timer, so that a simulation has the same outcome each time. With a slack of less than a millisecond the
    /// deadline is not moved. [`deadline`](Sleep::deadline) returns the moved instant.
    ///
    /// The slack moves the deadline; it does not bound the lateness. As with every timer, the sleep fires at the first tick after
    /// its deadline, when the driver's turn comes.
    ///
    /// # Panics
    ///
    /// Panics if `min` is greater than `max`, if the timer was stopped, or if it has reached its `max_pending`;
    /// [`try_sleep_within`](Timer::try_sleep_within) returns an error instead.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use waterwheel::{Duration, Timer};
    ///
    /// let timer = Timer::current();
    /// let begun = timer.now();
    /// let (min, max) = (Duration::from_millis(10), Duration::from_millis(30));
    /// let retry = timer.sleep_within(min, max);
    /// assert!(retry.deadline() >= begun + min);
    /// assert!(retry.deadline() <= timer.now() + max);
    /// retry.await;
    /// # }
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn sleep_within(&self, min: Duration, max: Duration) -> Sleep {
        // Not by `try_sleep_within`: a `Sleep` in a `Result` is copied.
        let slack = expect(slack_within(min, max));
        expect(self.admit());
        let shard = Arc::clone(self.shard());
        let now = shard.clock().now();
        Sleep::after_with_slack(shard, now, min, slack)
    }

    /// Like [`sleep_within`](Timer::sleep_within), but returns an error instead of panicking.
    ///
    /// # Errors
    ///
    /// Returns an error if `min` is greater than `max` ([`Error::is_invalid`]), if the timer was stopped
    /// ([`Error::is_shutdown`]), or if it has reached its `max_pending` ([`Error::is_at_capacity`]).
    #[inline]
    pub fn try_sleep_within(&self, min: Duration, max: Duration) -> Result<Sleep, Error> {
        let slack = slack_within(min, max)?;
        self.admit()?;
        let shard = Arc::clone(self.shard());
        let now = shard.clock().now();
        Ok(Sleep::after_with_slack(shard, now, min, slack))
    }
}

impl Sleep {
    /// Allows the sleep to fire up to `slack` after its deadline, and moves the deadline to where it fires together with others.
    ///
    /// See [`Timer::sleep_within`] for how the deadline is chosen.
    ///
    /// The deadline is moved once: one that is set by [`reset`](Sleep::reset) afterwards is exact. A sleep that has completed is
    /// left as it is.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use waterwheel::{Duration, sleep};
    ///
    /// let idle = sleep(Duration::from_secs(30));
    /// let exact = idle.deadline();
    /// let idle = idle.with_slack(Duration::from_secs(1));
    /// assert!(idle.deadline() >= exact && idle.deadline() < exact + Duration::from_secs(1));
    /// # }
    /// ```
    #[inline(always)]
    pub fn with_slack(mut self, slack: Duration) -> Sleep {
        self.allow(slack);
        self
    }
}

#[inline]
fn slack_within(min: Duration, max: Duration) -> Result<Duration, Error> {
    max.checked_sub(min).ok_or_else(Error::invalid_range)
}
