use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

#[cfg(not(target_os = "linux"))]
use super::elsewhere::Clock;
#[cfg(target_os = "linux")]
use super::linux::Clock;
use super::waiting::{Face, Timepiece, Waiting, since_1970};

/// Waits until the wall clock shows `deadline`. Requires the feature `clocks`.
///
/// The sleep completes when the wall clock reaches or passes `deadline`, by running or by being set, and never before. If the
/// clock is set back during the wait, it waits longer. Time during which the machine is suspended counts. A deadline that has
/// passed is ready at the first poll. There is no maximum duration; a deadline beyond the range of the system's clocks is never
/// ready.
///
/// # Cancellation
///
/// Dropping the future cancels it.
///
/// # Panics
///
/// Where the [fallback](crate::clocks#how-they-wait) is used, panics when polled where tokio's sleep panics: outside of a
/// runtime, in a runtime without `enable_time`, or after the runtime was dropped. It never panics on Linux unless the thread
/// cannot be started.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::{Duration, SystemTime};
/// use waterwheel::clocks::sleep_until_wall;
///
/// let deadline = SystemTime::now() + Duration::from_millis(20);
/// sleep_until_wall(deadline).await;
/// assert!(SystemTime::now() >= deadline);
/// # }
/// ```
pub fn sleep_until_wall(deadline: SystemTime) -> SleepUntilWall {
    SleepUntilWall {
        deadline,
        waiting: Waiting::new(Clock(Face::Wall), since_1970(deadline)),
    }
}

/// Waits until `duration` has passed, including time during which the machine is suspended. Requires the feature `clocks`.
///
/// If the machine is suspended at the deadline, the sleep completes when the machine resumes; use it for a lease that others
/// measure with their own clocks. On systems other than Linux, whether suspension counts depends on the system's `Instant`: it
/// does on Windows, and does not on macOS. Setting the wall clock has no effect.
///
/// # Cancellation
///
/// Dropping the future cancels it.
///
/// # Panics
///
/// Panics in the same cases as [`sleep_until_wall`].
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::{Duration, Instant};
/// use waterwheel::clocks::sleep_boot;
///
/// let begun = Instant::now();
/// sleep_boot(Duration::from_millis(20)).await;
/// assert!(begun.elapsed() >= Duration::from_millis(20));
/// # }
/// ```
pub fn sleep_boot(duration: Duration) -> SleepBoot {
    let clock = Clock(Face::Boot);
    let deadline = clock.now().saturating_add(duration);
    SleepBoot(Waiting::new(clock, deadline))
}

/// The future of [`sleep_until_wall`]. Requires the feature `clocks`.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct SleepUntilWall {
    deadline: SystemTime,
    waiting: Waiting<Clock>,
}

impl SleepUntilWall {
    /// Returns the deadline that was passed to [`sleep_until_wall`].
    #[must_use]
    pub fn deadline(&self) -> SystemTime {
        self.deadline
    }
}

/// The future of [`sleep_boot`]. Requires the feature `clocks`.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct SleepBoot(Waiting<Clock>);

impl Future for SleepUntilWall {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.waiting.poll(context)
    }
}

impl Future for SleepBoot {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.poll(context)
    }
}

impl fmt::Debug for SleepUntilWall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SleepUntilWall")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SleepBoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SleepBoot")
            .field("left", &self.0.left())
            .finish_non_exhaustive()
    }
}
