//! The functions that make sleeps: on the runtime's timer or on one of your own, for a duration or until an instant, with a
//! panic or with an error.

use std::sync::Arc;

use tokio::time::{Duration, Instant};

use super::FAR;
use super::sleep::{Lead, Sleep};
use crate::Timer;
use crate::driver::{Shard, current_shard};
use crate::error::Error;

/// Waits until `duration` has passed.
///
/// The sleep runs on the runtime's timer, [`Timer::current`]. Its deadline is `Instant::now() + duration`, with the duration
/// limited to 30 years. Name, signature and behaviour are those of `tokio::time::sleep`, apart from
/// [the documented differences](crate::time#differences-from-tokiotime).
///
/// # Precision
///
/// The sleep never completes before its deadline. It is [due](crate::time#when-a-timer-is-due) at the first tick of the timer
/// that is not before the deadline, and its task is woken within about a millisecond after that (see [`Waking`](crate::Waking)).
/// A zero duration therefore completes at the end of the current tick.
///
/// # Cancellation
///
/// Dropping the future cancels the sleep and frees its place at once.
///
/// # Panics
///
/// Panics at the call if it is made outside of a tokio runtime, if the runtime was built without `enable_time`, or if the
/// runtime's timer was shut down or drained.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use waterwheel::{Duration, sleep};
///
/// sleep(Duration::from_millis(10)).await;
/// println!("10 ms have passed");
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    let shard = current_shard();
    assert_open(&shard);
    let now = shard.clock().now_here();
    Sleep::after(shard, now, duration)
}

/// Waits until `deadline`.
///
/// A deadline whose tick has passed is ready at the first poll. Apart from that, this function behaves like [`sleep`]. Same as
/// `tokio::time::sleep_until`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use waterwheel::{Duration, Instant, sleep_until};
///
/// let deadline = Instant::now() + Duration::from_millis(10);
/// sleep_until(deadline).await;
/// assert!(Instant::now() >= deadline);
/// # }
/// ```
///
/// # Panics
///
/// Panics in the same cases as [`sleep`].
#[inline]
#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    let shard = current_shard();
    assert_open(&shard);
    Sleep::new(shard, deadline, Lead::UNKNOWN)
}

impl Timer {
    /// Creates a [`sleep`] on this timer. It can be called outside of a runtime.
    ///
    /// # Panics
    ///
    /// Panics if the timer was stopped or has reached its `max_pending`; [`try_sleep`](Timer::try_sleep) returns an error
    /// instead.
    #[inline(always)]
    #[track_caller]
    pub fn sleep(&self, duration: Duration) -> Sleep {
        expect(self.admit());
        let shard = Arc::clone(self.shard());
        let now = shard.clock().now();
        Sleep::after(shard, now, duration)
    }

    /// Creates a [`sleep_until`] on this timer. It can be called outside of a runtime.
    ///
    /// # Panics
    ///
    /// Panics if the timer was stopped or has reached its `max_pending`; [`try_sleep_until`](Timer::try_sleep_until) returns an
    /// error instead.
    #[inline]
    #[track_caller]
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        expect(self.admit());
        Sleep::new(Arc::clone(self.shard()), deadline, Lead::UNKNOWN)
    }

    /// Like [`sleep`](Timer::sleep), but returns an error instead of panicking.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use waterwheel::{Duration, Timer};
    ///
    /// let timer = Timer::builder().start()?;
    /// timer.try_sleep(Duration::from_millis(2))?.await;
    /// timer.shutdown();
    /// assert!(timer.try_sleep(Duration::from_millis(2)).unwrap_err().is_shutdown());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the timer was stopped ([`Error::is_shutdown`]) or has reached its `max_pending`
    /// ([`Error::is_at_capacity`]).
    #[inline]
    pub fn try_sleep(&self, duration: Duration) -> Result<Sleep, Error> {
        self.admit()?;
        let shard = Arc::clone(self.shard());
        let now = shard.clock().now();
        Ok(Sleep::after(shard, now, duration))
    }

    /// Like [`sleep_until`](Timer::sleep_until), but returns an error instead of panicking.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`try_sleep`](Timer::try_sleep).
    #[inline]
    pub fn try_sleep_until(&self, deadline: Instant) -> Result<Sleep, Error> {
        self.admit()?;
        Ok(Sleep::new(
            Arc::clone(self.shard()),
            deadline,
            Lead::UNKNOWN,
        ))
    }

    /// A sleep, or none if its deadline is beyond the range of `Instant`.
    #[inline(always)]
    #[track_caller]
    pub(super) fn sleep_unless_never(&self, duration: Duration) -> Option<Sleep> {
        if duration <= FAR {
            return Some(self.sleep(duration));
        }
        expect(self.try_sleep_beyond(duration))
    }

    /// [`sleep_unless_never`](Timer::sleep_unless_never), or an error.
    #[inline]
    pub(crate) fn try_sleep_unless_never(
        &self,
        duration: Duration,
    ) -> Result<Option<Sleep>, Error> {
        if duration <= FAR {
            return self.try_sleep(duration).map(Some);
        }
        self.try_sleep_beyond(duration)
    }

    #[cold]
    fn try_sleep_beyond(&self, duration: Duration) -> Result<Option<Sleep>, Error> {
        match self.shard().clock().now().checked_add(duration) {
            Some(deadline) => self.try_sleep_until(deadline).map(Some),
            None => self.shard().lifecycle().is_open().map(|()| None),
        }
    }
}

/// For the layers of tower, whose calls give errors.
#[cfg(feature = "tower")]
impl Sleep {
    /// [`on_current`](Sleep::on_current), or an error if the runtime's timer was shut down.
    #[track_caller]
    pub(crate) fn try_on_current(duration: Duration) -> Result<Option<Sleep>, Error> {
        let shard = current_shard();
        is_open_to_tasks(&shard)?;
        let now = shard.clock().now_here();
        if duration <= FAR {
            return Ok(Some(Sleep::after(shard, now, duration)));
        }
        let deadline = now.checked_add(duration);
        Ok(deadline.map(|deadline| Sleep::new(shard, deadline, Lead::UNKNOWN)))
    }

    /// [`sleep_until`], or an error if the runtime's timer was shut down.
    #[track_caller]
    pub(crate) fn try_until_on_current(deadline: Instant) -> Result<Sleep, Error> {
        let shard = current_shard();
        is_open_to_tasks(&shard)?;
        Ok(Sleep::new(shard, deadline, Lead::UNKNOWN))
    }
}

/// [`assert_open`], with the error.
#[cfg(feature = "tower")]
fn is_open_to_tasks(shard: &Shard) -> Result<(), Error> {
    match shard.lifecycle().is_closing() {
        true => Err(Error::shutdown()),
        false => Ok(()),
    }
}

/// Panics if the runtime's timer was shut down.
///
/// One whose runtime is ending takes the future: tasks run to their next `.await` then, and must not panic. As in tokio, only
/// the poll panics if it has ended.
#[inline]
#[track_caller]
fn assert_open(shard: &Shard) {
    if shard.lifecycle().is_closing() {
        refuse_on_current();
    }
}

#[cold]
#[track_caller]
fn refuse_on_current() -> ! {
    panic!(
        "cannot use the timer of this runtime: it was stopped, by `Timer::shutdown` or \
         `Timer::drain`, and accepts nothing new: start a timer of your own with \
         `Timer::builder()`"
    );
}

#[inline]
#[track_caller]
pub(super) fn expect<T>(made: Result<T, Error>) -> T {
    match made {
        Ok(made) => made,
        Err(error) => refuse(error),
    }
}

#[cold]
#[track_caller]
fn refuse(error: Error) -> ! {
    panic!("{error}")
}

impl Sleep {
    /// A sleep on the runtime's timer, or none if its deadline is beyond the range of `Instant`.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn on_current(duration: Duration) -> Option<Sleep> {
        if duration <= FAR {
            return Some(sleep(duration));
        }
        Sleep::on_current_beyond(duration)
    }

    /// A sleep on the runtime's timer that was asked for `duration` before its deadline, by the clock of that runtime; zero if that is
    /// not known. The call was made while the timer took futures, so this one is taken though it may be closing by now.
    #[inline]
    pub(super) fn bound_late(deadline: Instant, duration: Duration) -> Sleep {
        Sleep::until_after(current_shard(), deadline, duration)
    }

    #[cold]
    #[track_caller]
    fn on_current_beyond(duration: Duration) -> Option<Sleep> {
        let shard = current_shard();
        let deadline = shard.clock().now().checked_add(duration);
        let Some(deadline) = deadline else {
            assert_open(&shard);
            return None;
        };
        Some(sleep_until(deadline))
    }
}

// Sleeps for a caller that takes no refusal: code of other crates that has no error for it, and must not panic.

#[cfg(feature = "hyper")]
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

#[cfg(feature = "hyper")]
impl Sleep {
    /// Whether it waits by this timer.
    pub(crate) fn is_of(&self, timer: &Timer) -> bool {
        std::ptr::eq(self.lifecycle(), timer.shard().lifecycle())
    }
}
