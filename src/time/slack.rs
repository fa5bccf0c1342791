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
    /// Waits until `min` has passed, and lets the timer choose when after that, `max` at the latest: [`sleep`](Timer::sleep) with a slack of
    /// `max - min`.
    ///
    /// The deadline is moved up to the next whole number of 1, 2, 5, 10, 20, 50, 100, 200 or 500 ms or of 1, 5, 15 or 60 s, counted from an
    /// instant that all timers of the process share; of the coarsest of these that is not more than the slack. So timers of
    /// about the same time fire together, which takes less CPU. (On a [`ManualClock`](crate::ManualClock) it is counted from the clock's
    /// start, and on a clock that tokio may pause from the timer's, so that a simulation has the same outcome each time.) With a slack of less than a
    /// millisecond nothing is moved. [`deadline`](Sleep::deadline) is the moved instant.
    ///
    /// The slack moves the deadline, and does not bound the lateness: like every timer, it fires at the first tick after its
    /// deadline, when the driver's turn has come.
    ///
    /// # Panics
    ///
    /// If `min` is more than `max`, or the timer was stopped or has reached its `max_pending`; see
    /// [`try_sleep_within`](Timer::try_sleep_within).
    ///
    /// # Example
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

    /// [`sleep_within`](Timer::sleep_within), or an error.
    ///
    /// # Errors
    ///
    /// [`Error::is_invalid`] if `min` is more than `max`, [`Error::is_shutdown`] if the timer was stopped,
    /// [`Error::is_at_capacity`] if it has reached its `max_pending`.
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
    /// Allows the timer to fire up to `slack` later than the deadline, and moves the deadline to where it fires together with others. See
    /// [`Timer::sleep_within`].
    ///
    /// It does so once: a deadline that is set by [`reset`](Sleep::reset) afterwards is exact. A sleep that has completed stays as it is.
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
