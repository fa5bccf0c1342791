use std::future::poll_fn;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::time::{Duration, Instant};

use super::missed::MissedTickBehavior;
use super::sleep::{RUNTIME_IS_OVER, Sleep};
use super::{FAR, far_at_most};
use crate::Timer;
use crate::driver::End;
use crate::error::Error;

/// Creates an [`Interval`] that ticks every `period`, starting now.
///
/// The interval runs on the runtime's timer, [`Timer::current`]. Its period is limited to 30 years. Each tick comes when it is
/// [due](crate::time#when-a-timer-is-due), at the first tick of the timer that is not before its time; the first one therefore
/// comes at the end of the current tick of the timer. Rounding errors do not accumulate. Dropping the interval cancels it. Same
/// as `tokio::time::interval`.
///
/// # Panics
///
/// Panics at the call if `period` is zero, if the call is made outside of a tokio runtime, if the runtime was built without
/// `enable_time`, or if the runtime's timer was shut down or drained.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use waterwheel::{Duration, interval};
///
/// let mut heartbeat = interval(Duration::from_millis(5));
/// for _ in 0..3 {
///     heartbeat.tick().await; // at 0, 5 and 10 ms
/// }
/// # }
/// ```
#[must_use]
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    assert_period(period);
    Interval::new(super::sleep_until(Instant::now()), period)
}

/// Creates an [`Interval`] that ticks every `period`, starting at the tick of `start`.
///
/// Apart from its start, it behaves like [`interval`]. Same as `tokio::time::interval_at`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use waterwheel::{Duration, Instant, interval_at};
///
/// let start = Instant::now() + Duration::from_millis(5);
/// let mut heartbeat = interval_at(start, Duration::from_millis(10));
/// assert_eq!(heartbeat.tick().await, start);
/// # }
/// ```
///
/// # Panics
///
/// Panics in the same cases as [`interval`].
#[must_use]
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert_period(period);
    Interval::new(super::sleep_until(start), period)
}

impl Timer {
    /// Creates an [`interval`] on this timer.
    ///
    /// # Panics
    ///
    /// Panics if `period` is zero, if the timer was stopped, or if it has reached its `max_pending`;
    /// [`try_interval`](Timer::try_interval) returns an error instead.
    #[must_use]
    #[track_caller]
    pub fn interval(&self, period: Duration) -> Interval {
        super::start::expect(self.try_interval(period))
    }

    /// Creates an [`interval_at`] on this timer.
    ///
    /// # Panics
    ///
    /// Panics if `period` is zero, if the timer was stopped, or if it has reached its `max_pending`;
    /// [`try_interval_at`](Timer::try_interval_at) returns an error instead.
    #[must_use]
    #[track_caller]
    pub fn interval_at(&self, start: Instant, period: Duration) -> Interval {
        super::start::expect(self.try_interval_at(start, period))
    }

    /// Like [`interval`](Timer::interval), but returns an error instead of panicking.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use waterwheel::{Duration, Timer};
    ///
    /// let timer = Timer::builder().start()?;
    /// let mut ticks = timer.try_interval(Duration::from_secs(60))?;
    /// ticks.try_tick().await?; // the first comes now
    /// timer.shutdown();
    /// assert!(ticks.try_tick().await.unwrap_err().is_shutdown());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if `period` is zero ([`Error::is_invalid`]), if the timer was stopped ([`Error::is_shutdown`]), or if it
    /// has reached its `max_pending` ([`Error::is_at_capacity`]).
    pub fn try_interval(&self, period: Duration) -> Result<Interval, Error> {
        self.try_interval_at(self.now(), period)
    }

    /// Like [`interval_at`](Timer::interval_at), but returns an error instead of panicking.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`try_interval`](Timer::try_interval).
    pub fn try_interval_at(&self, start: Instant, period: Duration) -> Result<Interval, Error> {
        if period.is_zero() {
            return Err(Error::invalid());
        }
        Ok(Interval::new(self.try_sleep_until(start)?, period))
    }
}

#[track_caller]
fn assert_period(period: Duration) {
    assert!(!period.is_zero(), "`period` must be non-zero.");
}

/// A sequence of ticks, created by [`interval`] and [`interval_at`].
///
/// Unlike a loop around [`sleep`](crate::sleep), an interval does not drift: it waits for the time of the next tick, not for one
/// period from now. Take ticks with [`tick`](Interval::tick), or use the interval as a [`Stream`], which ends when the timer is
/// stopped.
///
/// An interval takes one place of its timer's `max_pending` for as long as it lives.
#[derive(Debug)]
pub struct Interval {
    delay: Sleep,
    period: Duration,
    missed_tick_behavior: MissedTickBehavior,
    missed: u64,
    /// Whether a tick has reported that the timer was stopped.
    ended: bool,
}

impl Interval {
    fn new(delay: Sleep, period: Duration) -> Interval {
        Interval {
            delay,
            period: period.min(FAR),
            missed_tick_behavior: MissedTickBehavior::default(),
            missed: 0,
            ended: false,
        }
    }

    /// Waits for the next tick, and returns the instant at which it was due.
    ///
    /// If the timer is stopped, `tick` completes once, immediately, and [`was_stopped`](Interval::was_stopped) then returns
    /// `true`. In that case [`try_tick`](Interval::try_tick) returns an error, and the [`Stream`] ends. If the timer is
    /// [drained](Timer::drain), the next tick is the last, and `was_stopped` returns `true` after it.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe. If the future is dropped before it completes, no tick is lost.
    ///
    /// # Panics
    ///
    /// Panics if [`was_stopped`](Interval::was_stopped) already returned `true` before the call, or if the timer's runtime
    /// [has ended](crate::time#when-a-runtime-ends).
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// Waits for the next tick, or returns an error if the timer was stopped.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_shutdown`]) if the timer was stopped or its runtime has ended.
    pub async fn try_tick(&mut self) -> Result<Instant, Error> {
        poll_fn(|context| self.poll_try_tick(context)).await
    }

    /// Polls for the next tick. `Ready` leaves no waker registered.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`tick`](Interval::tick).
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        let had_ended = self.ended;
        let tick = ready!(self.poll_try_tick(context));
        Poll::Ready(tick.unwrap_or_else(|_| {
            self.assert_was_stopped();
            assert!(
                !had_ended,
                "the timer of this interval was stopped: check `was_stopped` after each tick, use \
                 `try_tick`, or use the interval as a stream, which ends"
            );
            self.delay.deadline()
        }))
    }

    /// Resets the interval: the next tick comes one period from now. An interval that has ended stays ended, as described at
    /// [`reset_at`](Interval::reset_at).
    pub fn reset(&mut self) {
        self.reset_at(far_at_most(self.delay.clock().now(), self.period));
    }

    /// Makes the next tick come now, at the end of the current tick of the timer. An interval that has ended stays ended, as
    /// described at [`reset_at`](Interval::reset_at).
    pub fn reset_immediately(&mut self) {
        self.reset_at(self.delay.clock().now());
    }

    /// Makes the next tick come after this duration, which is limited to 30 years. An interval that has ended stays ended, as
    /// described at [`reset_at`](Interval::reset_at).
    pub fn reset_after(&mut self, after: Duration) {
        self.reset_at(far_at_most(self.delay.clock().now(), after));
    }

    /// Makes the next tick come at `deadline`, and the following ticks one period apart.
    ///
    /// If `deadline` has passed, ticks may count as missed, and the [`MissedTickBehavior`] decides what happens to them.
    ///
    /// An interval that has ended, because its timer was stopped or its runtime has ended, stays ended: the call has no effect, and
    /// [`was_stopped`](Interval::was_stopped) still returns `true`. To tick again, create an interval on another timer.
    pub fn reset_at(&mut self, deadline: Instant) {
        if self.ended {
            return;
        }
        self.delay.set_deadline(deadline);
    }

    /// Returns what happens when a tick was missed.
    #[must_use]
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed_tick_behavior
    }

    /// Sets what happens when a tick was missed.
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed_tick_behavior = behavior;
    }

    /// Returns the number of ticks missed so far: taken late, or skipped.
    ///
    /// Not in tokio.
    #[must_use]
    pub fn missed_ticks(&self) -> u64 {
        self.missed
    }

    /// Returns the time between two ticks.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Sets the time between two ticks, from the next tick on. The time of the next tick does not change. The period is limited
    /// to 30 years.
    ///
    /// Not in tokio.
    ///
    /// # Panics
    ///
    /// Panics if `period` is zero.
    #[track_caller]
    pub fn set_period(&mut self, period: Duration) {
        assert_period(period);
        self.period = period.min(FAR);
    }

    /// Delays the next tick, and with it all later ones, by a random duration of up to `most`.
    ///
    /// Use it for many intervals with the same period that are created at the same time, such as the heartbeats of all
    /// connections after a restart: with a jitter of one period they are spread evenly instead of ticking together forever (a
    /// thundering herd).
    ///
    /// Not in tokio.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use waterwheel::{Duration, interval};
    ///
    /// let period = Duration::from_millis(10);
    /// let mut heartbeat = interval(period).with_start_jitter(period);
    /// heartbeat.tick().await; // somewhere from 0 to 10 ms
    /// heartbeat.tick().await; // 10 ms later
    /// # }
    /// ```
    #[must_use]
    pub fn with_start_jitter(mut self, most: Duration) -> Interval {
        // Each `RandomState` has keys of its own, which is all the randomness that this needs.
        let random = RandomState::new().build_hasher().finish();
        let share = random as f64 / 2_f64.powi(64);
        let start = self.delay.deadline();
        if let Some(start) = start.checked_add(most.min(FAR).mul_f64(share)) {
            self.reset_at(start);
        }
        self
    }

    /// Returns `true` if the interval has ended because its timer was stopped, so that no more ticks come.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        self.ended
    }

    fn poll_try_tick(&mut self, context: &mut Context<'_>) -> Poll<Result<Instant, Error>> {
        if self.ended {
            return Poll::Ready(Err(Error::shutdown()));
        }
        let now = ready!(self.delay.poll_tick(context));
        match self.delay.found_end() {
            None => {}
            // The task is dropped next.
            Some(End::TaskOfEndingRuntime) => return Poll::Pending,
            Some(End::Stopped | End::Over) => return Poll::Ready(Err(self.end())),
        }
        let tick = self.delay.deadline();
        let next = self.next_after(tick, now);
        self.delay.rearm(next);
        if self.delay.is_closing() {
            // The timer drains: this was the last tick.
            self.end();
        }
        Poll::Ready(Ok(tick))
    }

    /// No tick comes any more. Panics if not its owner has stopped the timer.
    pub(crate) fn assert_was_stopped(&self) {
        assert!(self.delay.is_closing(), "{RUNTIME_IS_OVER}");
    }

    fn end(&mut self) -> Error {
        self.ended = true;
        Error::shutdown()
    }

    fn next_after(&mut self, tick: Instant, now: Instant) -> Instant {
        let clock = self.delay.clock();
        let late = now.saturating_duration_since(tick);
        let next = if late > (clock.resolution().tick() * 2).max(LATE) {
            let (next, left_out) = self.missed_tick_behavior.after_late(tick, now, self.period);
            self.missed = self.missed.saturating_add(left_out).saturating_add(1);
            next
        } else {
            tick.checked_add(self.period)
        };
        next.unwrap_or_else(|| far_at_most(now, FAR))
    }
}

/// A tick that is later than this was missed; less may be the scheduler's doing.
const LATE: Duration = Duration::from_millis(5);

/// Yields the ticks that [`tick`](Interval::tick) returns, until the timer is stopped.
impl Stream for Interval {
    type Item = Instant;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.poll_try_tick(context).map(Result::ok)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let most = if self.ended { Some(0) } else { None };
        (0, most)
    }
}
