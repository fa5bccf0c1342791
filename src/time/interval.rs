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

/// Ticks every `period`, for the first time now.
///
/// On the runtime's timer, [`Timer::current`]. A period is cut to 30 years. Each tick comes when it is
/// [due](crate::time#when-a-timer-is-due): at the first tick of the timer that is not before its time. So the first one comes at the end of the running tick of the timer. The rounding does not add up. Dropping the interval cancels it. Same as `tokio::time::interval`.
///
/// # Panics
///
/// At the call: if `period` is zero, outside a tokio runtime, in one without `enable_time`, or if
/// the runtime's timer was shut down.
///
/// # Example
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

/// Ticks every `period`, for the first time at the tick of `start`. Otherwise as [`interval`]; same as
/// `tokio::time::interval_at`.
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
/// As [`interval`].
#[must_use]
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert_period(period);
    Interval::new(super::sleep_until(start), period)
}

impl Timer {
    /// [`interval`] on this timer.
    ///
    /// # Panics
    ///
    /// If `period` is zero, or the timer was stopped or has reached its `max_pending`; see
    /// [`try_interval`](Timer::try_interval).
    #[must_use]
    #[track_caller]
    pub fn interval(&self, period: Duration) -> Interval {
        super::start::expect(self.try_interval(period))
    }

    /// [`interval_at`] on this timer.
    ///
    /// # Panics
    ///
    /// If `period` is zero, or the timer was stopped or has reached its `max_pending`; see
    /// [`try_interval_at`](Timer::try_interval_at).
    #[must_use]
    #[track_caller]
    pub fn interval_at(&self, start: Instant, period: Duration) -> Interval {
        super::start::expect(self.try_interval_at(start, period))
    }

    /// [`interval`](Timer::interval), or an error.
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
    /// [`Error::is_invalid`] if `period` is zero, [`Error::is_shutdown`] if the timer was
    /// stopped, [`Error::is_at_capacity`] if it has reached its `max_pending`.
    pub fn try_interval(&self, period: Duration) -> Result<Interval, Error> {
        self.try_interval_at(self.now(), period)
    }

    /// [`interval_at`](Timer::interval_at), or an error.
    ///
    /// # Errors
    ///
    /// As [`try_interval`](Timer::try_interval).
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

/// A stream of ticks; from [`interval`] and [`interval_at`].
///
/// Unlike a loop around [`sleep`](crate::sleep), it does not drift: it waits for the time of the
/// next tick, not for a period from now. Take ticks with [`tick`](Interval::tick), or as a
/// [`Stream`], which ends when the timer is stopped.
///
/// It holds one place of a timer's `max_pending` for as long as it lives.
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

    /// Waits for the next tick, and gives the instant that it was due.
    ///
    /// If the timer is stopped, completes at once, one time; then [`was_stopped`](Interval::was_stopped) returns `true`.
    /// [`try_tick`](Interval::try_tick) returns an error in that case, and the [`Stream`] ends.
    ///
    /// # Cancellation
    ///
    /// Safe: if the future is dropped before it completes, no tick is lost.
    ///
    /// # Panics
    ///
    /// If the timer was stopped, and an earlier call has completed for that reason.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// Waits for the next tick, or returns an error if the timer was stopped.
    ///
    /// # Errors
    ///
    /// [`Error::is_shutdown`] if the timer was stopped.
    pub async fn try_tick(&mut self) -> Result<Instant, Error> {
        poll_fn(|context| self.poll_try_tick(context)).await
    }

    /// [`tick`](Interval::tick), by hand. `Ready` leaves no waker behind.
    ///
    /// # Panics
    ///
    /// As [`tick`](Interval::tick).
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        let had_ended = self.ended;
        let tick = ready!(self.poll_try_tick(context));
        Poll::Ready(tick.unwrap_or_else(|_| {
            self.assert_was_stopped();
            assert!(
                !had_ended,
                "this interval's timer was stopped: look at `was_stopped` after a tick, use \
                 `try_tick`, or take the ticks as a stream, which ends"
            );
            self.delay.deadline()
        }))
    }

    /// Restarts the interval: the next tick comes a period from now.
    pub fn reset(&mut self) {
        self.reset_at(far_at_most(self.delay.clock().now(), self.period));
    }

    /// Makes the next tick come now: at the end of the running tick of the timer.
    pub fn reset_immediately(&mut self) {
        self.reset_at(self.delay.clock().now());
    }

    /// Makes the next tick come after this duration, cut to 30 years.
    pub fn reset_after(&mut self, after: Duration) {
        self.reset_at(far_at_most(self.delay.clock().now(), after));
    }

    /// Makes the next tick come at `deadline`, and those after it one period apart.
    ///
    /// If that has passed, ticks are missed, and what becomes of them is up to the
    /// [`MissedTickBehavior`].
    pub fn reset_at(&mut self, deadline: Instant) {
        if self.ended {
            return;
        }
        self.delay.set_deadline(deadline);
    }

    /// What happens when a tick was missed.
    #[must_use]
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed_tick_behavior
    }

    /// Sets what happens when a tick was missed.
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed_tick_behavior = behavior;
    }

    /// How many ticks were missed so far: taken late, or left out.
    ///
    /// Not in tokio.
    #[must_use]
    pub fn missed_ticks(&self) -> u64 {
        self.missed
    }

    /// The time from tick to tick.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Sets the time from tick to tick, from the next tick on; when that one comes is settled
    /// already. A period is cut to 30 years.
    ///
    /// Not in tokio.
    ///
    /// # Panics
    ///
    /// If `period` is zero.
    #[track_caller]
    pub fn set_period(&mut self, period: Duration) {
        assert_period(period);
        self.period = period.min(FAR);
    }

    /// Moves the next tick, and with it all after it, by a random part of `most`.
    ///
    /// For many intervals of one period that are made at once, such as the heartbeats of all
    /// connections after a restart: with a jitter of one period they are spread evenly instead
    /// of all ticking together for ever.
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

    /// Whether the timer was stopped, so that no more ticks come.
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

/// Ticks, as [`tick`](Interval::tick) gives them, until the timer is stopped.
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
