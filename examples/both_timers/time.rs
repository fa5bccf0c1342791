//! The application's own `time` module: the rest of the application uses `crate::time` instead of `tokio::time`.
//!
//! [`choose`] selects the timers once, at startup. Each type has a variant for either library, so nothing is boxed. The module
//! covers `tokio::time`, apart from `Timeout`'s access to the inner future and the paused clock. [`error::Elapsed`] is a type of
//! this module, with tokio's text, since each library has one of its own. It depends on the crate pin-project-lite.
//!
//! Declare it as `pub mod time;` in the root of the application, so that uncalled functions are not reported as dead code.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

pub use tokio::time::{Duration, Instant};
pub use waterwheel::MissedTickBehavior;

/// The library whose timers the application uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timers {
    /// `tokio::time`.
    Tokio,
    /// `waterwheel::time`.
    Waterwheel,
}

static CHOICE: OnceLock<Timers> = OnceLock::new();

/// Selects the timers for the whole process. Call this at the start of `main`.
///
/// # Panics
///
/// Panics if they were selected already, by an earlier call or because a timer was created.
pub fn choose(timers: Timers) {
    assert!(
        CHOICE.set(timers).is_ok(),
        "the timers were chosen already: call `choose` once, before the first timer is created"
    );
}

/// Returns the selected timers: tokio's by default, so that a rollback needs no setting.
pub fn chosen() -> Timers {
    *CHOICE.get_or_init(|| Timers::Tokio)
}

/// Like `tokio::time::sleep`.
pub fn sleep(delay: Duration) -> Sleep {
    chosen().sleep(delay)
}

/// Like `tokio::time::sleep_until`.
pub fn sleep_until(deadline: Instant) -> Sleep {
    chosen().sleep_until(deadline)
}

/// Like `tokio::time::timeout`.
pub fn timeout<F: IntoFuture>(limit: Duration, work: F) -> Timeout<F::IntoFuture> {
    chosen().timeout(limit, work)
}

/// Like `tokio::time::timeout_at`.
pub fn timeout_at<F: IntoFuture>(deadline: Instant, work: F) -> Timeout<F::IntoFuture> {
    chosen().timeout_at(deadline, work)
}

/// Like `tokio::time::interval`.
pub fn interval(period: Duration) -> Interval {
    chosen().interval(period)
}

/// Like `tokio::time::interval_at`.
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    chosen().interval_at(start, period)
}

impl Timers {
    /// Like [`sleep`], with these timers.
    pub fn sleep(self, delay: Duration) -> Sleep {
        let either = match self {
            Timers::Tokio => Either::Tokio {
                future: tokio::time::sleep(delay),
            },
            Timers::Waterwheel => Either::Waterwheel {
                future: waterwheel::sleep(delay),
            },
        };
        Sleep { either }
    }

    /// Like [`sleep_until`], with these timers.
    pub fn sleep_until(self, deadline: Instant) -> Sleep {
        let either = match self {
            Timers::Tokio => Either::Tokio {
                future: tokio::time::sleep_until(deadline),
            },
            Timers::Waterwheel => Either::Waterwheel {
                future: waterwheel::sleep_until(deadline),
            },
        };
        Sleep { either }
    }

    /// Like [`timeout`], with these timers.
    pub fn timeout<F: IntoFuture>(self, limit: Duration, work: F) -> Timeout<F::IntoFuture> {
        let either = match self {
            Timers::Tokio => Either::Tokio {
                future: tokio::time::timeout(limit, work),
            },
            Timers::Waterwheel => Either::Waterwheel {
                future: waterwheel::timeout(limit, work),
            },
        };
        Timeout { either }
    }

    /// Like [`timeout_at`], with these timers.
    pub fn timeout_at<F: IntoFuture>(self, deadline: Instant, work: F) -> Timeout<F::IntoFuture> {
        let either = match self {
            Timers::Tokio => Either::Tokio {
                future: tokio::time::timeout_at(deadline, work),
            },
            Timers::Waterwheel => Either::Waterwheel {
                future: waterwheel::timeout_at(deadline, work),
            },
        };
        Timeout { either }
    }

    /// Like [`interval`], with these timers.
    pub fn interval(self, period: Duration) -> Interval {
        match self {
            Timers::Tokio => Interval::Tokio(tokio::time::interval(period)),
            Timers::Waterwheel => Interval::Waterwheel(waterwheel::interval(period)),
        }
    }

    /// Like [`interval_at`], with these timers.
    pub fn interval_at(self, start: Instant, period: Duration) -> Interval {
        match self {
            Timers::Tokio => Interval::Tokio(tokio::time::interval_at(start, period)),
            Timers::Waterwheel => Interval::Waterwheel(waterwheel::interval_at(start, period)),
        }
    }
}

pin_project! {
    /// A future of either library.
    #[derive(Debug)]
    #[project = EitherProjection]
    enum Either<T, W> {
        Tokio { #[pin] future: T },
        Waterwheel { #[pin] future: W },
    }
}

pin_project! {
    /// The future returned by [`sleep`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Sleep {
        #[pin]
        either: Either<tokio::time::Sleep, waterwheel::Sleep>,
    }
}

impl Sleep {
    /// Like `tokio::time::Sleep::deadline`.
    pub fn deadline(&self) -> Instant {
        match &self.either {
            Either::Tokio { future } => future.deadline(),
            Either::Waterwheel { future } => future.deadline(),
        }
    }

    /// Like `tokio::time::Sleep::is_elapsed`.
    pub fn is_elapsed(&self) -> bool {
        match &self.either {
            Either::Tokio { future } => future.is_elapsed(),
            Either::Waterwheel { future } => future.is_elapsed(),
        }
    }

    /// Like `tokio::time::Sleep::reset`.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        match self.project().either.project() {
            EitherProjection::Tokio { future } => future.reset(deadline),
            EitherProjection::Waterwheel { future } => future.reset(deadline),
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.project().either.project() {
            EitherProjection::Tokio { future } => future.poll(context),
            EitherProjection::Waterwheel { future } => future.poll(context),
        }
    }
}

pin_project! {
    /// The future returned by [`timeout`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Timeout<F> {
        #[pin]
        either: Either<tokio::time::Timeout<F>, waterwheel::Timeout<F>>,
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, error::Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let output = match self.project().either.project() {
            EitherProjection::Tokio { future } => ready!(future.poll(context)).ok(),
            EitherProjection::Waterwheel { future } => ready!(future.poll(context)).ok(),
        };
        Poll::Ready(output.ok_or(error::Elapsed(())))
    }
}

/// The interval returned by [`interval`].
#[derive(Debug)]
pub enum Interval {
    /// tokio's interval.
    Tokio(tokio::time::Interval),
    /// waterwheel's interval.
    Waterwheel(waterwheel::Interval),
}

/// Calls the method of this name on whichever interval it is.
macro_rules! of_either {
    ($interval:expr, $method:ident($($argument:expr),*)) => {
        match $interval {
            Interval::Tokio(interval) => interval.$method($($argument),*),
            Interval::Waterwheel(interval) => interval.$method($($argument),*),
        }
    };
}

impl Interval {
    /// Like `tokio::time::Interval::tick`.
    pub async fn tick(&mut self) -> Instant {
        std::future::poll_fn(|context| self.poll_tick(context)).await
    }

    /// Like `tokio::time::Interval::poll_tick`.
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        of_either!(self, poll_tick(context))
    }

    /// Like `tokio::time::Interval::reset`.
    pub fn reset(&mut self) {
        of_either!(self, reset());
    }

    /// Like `tokio::time::Interval::reset_immediately`.
    pub fn reset_immediately(&mut self) {
        of_either!(self, reset_immediately());
    }

    /// Like `tokio::time::Interval::reset_after`.
    pub fn reset_after(&mut self, delay: Duration) {
        of_either!(self, reset_after(delay));
    }

    /// Like `tokio::time::Interval::reset_at`.
    pub fn reset_at(&mut self, deadline: Instant) {
        of_either!(self, reset_at(deadline));
    }

    /// Like `tokio::time::Interval::period`.
    pub fn period(&self) -> Duration {
        of_either!(self, period())
    }

    /// Like `tokio::time::Interval::missed_tick_behavior`.
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        match self {
            Interval::Tokio(interval) => match interval.missed_tick_behavior() {
                tokio::time::MissedTickBehavior::Burst => MissedTickBehavior::Burst,
                tokio::time::MissedTickBehavior::Delay => MissedTickBehavior::Delay,
                tokio::time::MissedTickBehavior::Skip => MissedTickBehavior::Skip,
            },
            Interval::Waterwheel(interval) => interval.missed_tick_behavior(),
        }
    }

    /// Like `tokio::time::Interval::set_missed_tick_behavior`.
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        match self {
            Interval::Tokio(interval) => interval.set_missed_tick_behavior(match behavior {
                MissedTickBehavior::Burst => tokio::time::MissedTickBehavior::Burst,
                MissedTickBehavior::Delay => tokio::time::MissedTickBehavior::Delay,
                MissedTickBehavior::Skip => tokio::time::MissedTickBehavior::Skip,
            }),
            Interval::Waterwheel(interval) => interval.set_missed_tick_behavior(behavior),
        }
    }
}

/// Like `tokio::time::error`.
pub mod error {
    use std::{fmt, io};

    /// The error of a timeout whose deadline passed before its future was ready.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Elapsed(pub(super) ());

    impl fmt::Display for Elapsed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("deadline has elapsed")
        }
    }

    impl std::error::Error for Elapsed {}

    impl From<Elapsed> for io::Error {
        fn from(elapsed: Elapsed) -> io::Error {
            io::Error::new(io::ErrorKind::TimedOut, elapsed)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{self, ready};
    use std::io;
    use std::pin::pin;

    use super::error::Elapsed;
    use super::*;

    const BOTH: [Timers; 2] = [Timers::Tokio, Timers::Waterwheel];
    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn both_sleep_until_their_deadline() {
        for timers in BOTH {
            let start = Instant::now();
            timers.sleep_until(start + SECOND).await;
            let mut sleep = pin!(timers.sleep(SECOND));
            sleep.as_mut().reset(start + 3 * SECOND);
            assert_eq!(sleep.deadline(), start + 3 * SECOND);
            assert!(!sleep.is_elapsed());
            sleep.as_mut().await;
            assert!(sleep.is_elapsed());
            assert_eq!(start.elapsed(), 3 * SECOND, "{timers:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn both_limit_the_time_of_a_future() {
        for timers in BOTH {
            assert_eq!(timers.timeout(SECOND, ready(42)).await, Ok(42));
            let forever = timers.timeout(SECOND, future::pending::<()>());
            assert_eq!(forever.await, Err(Elapsed(())), "{timers:?}");
            let start = Instant::now();
            let forever = timers.timeout_at(start + SECOND, future::pending::<()>());
            let elapsed = forever.await.unwrap_err();
            assert_eq!(start.elapsed(), SECOND);
            assert_eq!(elapsed.to_string(), "deadline has elapsed");
            assert_eq!(io::Error::from(elapsed).kind(), io::ErrorKind::TimedOut);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn both_tick() {
        for timers in BOTH {
            let start = Instant::now();
            let mut interval = timers.interval(SECOND);
            assert_eq!(interval.missed_tick_behavior(), MissedTickBehavior::Burst);
            interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
            assert_eq!(interval.missed_tick_behavior(), MissedTickBehavior::Skip);
            interval.tick().await;
            tokio::time::sleep(Duration::from_millis(2500)).await;
            // The second tick is late, the third is skipped to the period's grid.
            interval.tick().await;
            assert_eq!(interval.tick().await - start, 3 * SECOND);
            assert_eq!(interval.period(), SECOND);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn both_are_reset() {
        for timers in BOTH {
            let start = Instant::now();
            let mut interval = timers.interval_at(start + SECOND, SECOND);
            interval.tick().await;
            interval.reset_after(5 * SECOND);
            assert_eq!(interval.tick().await - start, 6 * SECOND);
            interval.reset_at(start + 8 * SECOND);
            assert_eq!(interval.tick().await - start, 8 * SECOND);
            interval.reset_immediately();
            assert_eq!(interval.tick().await - start, 8 * SECOND);
            tokio::time::sleep(SECOND / 2).await;
            interval.reset();
            assert_eq!(interval.tick().await - start, SECOND * 19 / 2, "{timers:?}");
        }
    }

    // No other test makes a timer through the free functions.
    #[tokio::test(start_paused = true)]
    async fn the_choice_is_made_once() {
        choose(Timers::Waterwheel);
        let timer = waterwheel::Timer::current();
        let start = Instant::now();
        sleep(SECOND).await;
        sleep_until(start + 2 * SECOND).await;
        interval(SECOND).tick().await;
        interval_at(start + 3 * SECOND, SECOND).tick().await;
        assert!(timeout(SECOND, future::pending::<()>()).await.is_err());
        let at = Instant::now() + SECOND;
        assert!(timeout_at(at, future::pending::<()>()).await.is_err());
        assert!(timer.metrics().armed() >= 5);
        assert!(std::panic::catch_unwind(|| choose(Timers::Tokio)).is_err());
        assert_eq!(chosen(), Timers::Waterwheel);
    }
}
