//! The application's own `time` module: the rest of the application says `crate::time` where it said `tokio::time`.
//!
//! [`choose`] picks the timers once, at start. Each type has a variant for either library, so no call is boxed. It has all of
//! `tokio::time` but `Timeout`'s access to the inner future and the paused clock. [`error::Elapsed`] is its own type, with tokio's
//! text, since each library has one of its own. It needs the crate pin-project-lite.

#![cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "this application does not call all of it; leave the attribute out where all is called"
    )
)]

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

pub(crate) use tokio::time::{Duration, Instant};
pub(crate) use waterwheel::MissedTickBehavior;

/// Which library's timers the application uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timers {
    Tokio,
    Waterwheel,
}

static CHOICE: OnceLock<Timers> = OnceLock::new();

/// Sets the timers for the whole process. Call it first thing in `main`.
///
/// # Panics
///
/// If they were chosen already, by an earlier call or by a first use.
pub(crate) fn choose(timers: Timers) {
    assert!(
        CHOICE.set(timers).is_ok(),
        "choose the timers once, before the first of them is made"
    );
}

/// tokio's, unless others were chosen: the way back is to say nothing.
pub(crate) fn chosen() -> Timers {
    *CHOICE.get_or_init(|| Timers::Tokio)
}

pub(crate) fn sleep(delay: Duration) -> Sleep {
    chosen().sleep(delay)
}

pub(crate) fn sleep_until(deadline: Instant) -> Sleep {
    chosen().sleep_until(deadline)
}

pub(crate) fn timeout<F: IntoFuture>(limit: Duration, work: F) -> Timeout<F::IntoFuture> {
    chosen().timeout(limit, work)
}

pub(crate) fn timeout_at<F: IntoFuture>(deadline: Instant, work: F) -> Timeout<F::IntoFuture> {
    chosen().timeout_at(deadline, work)
}

pub(crate) fn interval(period: Duration) -> Interval {
    chosen().interval(period)
}

pub(crate) fn interval_at(start: Instant, period: Duration) -> Interval {
    chosen().interval_at(start, period)
}

impl Timers {
    pub(crate) fn sleep(self, delay: Duration) -> Sleep {
        match self {
            Timers::Tokio => Sleep::Tokio {
                sleep: tokio::time::sleep(delay),
            },
            Timers::Waterwheel => Sleep::Waterwheel {
                sleep: waterwheel::sleep(delay),
            },
        }
    }

    pub(crate) fn sleep_until(self, deadline: Instant) -> Sleep {
        match self {
            Timers::Tokio => Sleep::Tokio {
                sleep: tokio::time::sleep_until(deadline),
            },
            Timers::Waterwheel => Sleep::Waterwheel {
                sleep: waterwheel::sleep_until(deadline),
            },
        }
    }

    pub(crate) fn timeout<F: IntoFuture>(self, limit: Duration, work: F) -> Timeout<F::IntoFuture> {
        match self {
            Timers::Tokio => Timeout::Tokio {
                timeout: tokio::time::timeout(limit, work),
            },
            Timers::Waterwheel => Timeout::Waterwheel {
                timeout: waterwheel::timeout(limit, work),
            },
        }
    }

    pub(crate) fn timeout_at<F: IntoFuture>(
        self,
        deadline: Instant,
        work: F,
    ) -> Timeout<F::IntoFuture> {
        match self {
            Timers::Tokio => Timeout::Tokio {
                timeout: tokio::time::timeout_at(deadline, work),
            },
            Timers::Waterwheel => Timeout::Waterwheel {
                timeout: waterwheel::timeout_at(deadline, work),
            },
        }
    }

    pub(crate) fn interval(self, period: Duration) -> Interval {
        match self {
            Timers::Tokio => Interval::Tokio(tokio::time::interval(period)),
            Timers::Waterwheel => Interval::Waterwheel(waterwheel::interval(period)),
        }
    }

    pub(crate) fn interval_at(self, start: Instant, period: Duration) -> Interval {
        match self {
            Timers::Tokio => Interval::Tokio(tokio::time::interval_at(start, period)),
            Timers::Waterwheel => Interval::Waterwheel(waterwheel::interval_at(start, period)),
        }
    }
}

pin_project! {
    /// The future of [`sleep`].
    #[derive(Debug)]
    #[project = SleepProjection]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub(crate) enum Sleep {
        Tokio { #[pin] sleep: tokio::time::Sleep },
        Waterwheel { #[pin] sleep: waterwheel::Sleep },
    }
}

impl Sleep {
    pub(crate) fn deadline(&self) -> Instant {
        match self {
            Sleep::Tokio { sleep } => sleep.deadline(),
            Sleep::Waterwheel { sleep } => sleep.deadline(),
        }
    }

    pub(crate) fn is_elapsed(&self) -> bool {
        match self {
            Sleep::Tokio { sleep } => sleep.is_elapsed(),
            Sleep::Waterwheel { sleep } => sleep.is_elapsed(),
        }
    }

    pub(crate) fn reset(self: Pin<&mut Self>, deadline: Instant) {
        match self.project() {
            SleepProjection::Tokio { sleep } => sleep.reset(deadline),
            SleepProjection::Waterwheel { sleep } => sleep.reset(deadline),
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.project() {
            SleepProjection::Tokio { sleep } => sleep.poll(context),
            SleepProjection::Waterwheel { sleep } => sleep.poll(context),
        }
    }
}

pin_project! {
    /// The future of [`timeout`].
    #[derive(Debug)]
    #[project = TimeoutProjection]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub(crate) enum Timeout<F> {
        Tokio { #[pin] timeout: tokio::time::Timeout<F> },
        Waterwheel { #[pin] timeout: waterwheel::Timeout<F> },
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, error::Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let output = match self.project() {
            TimeoutProjection::Tokio { timeout } => ready!(timeout.poll(context)).ok(),
            TimeoutProjection::Waterwheel { timeout } => ready!(timeout.poll(context)).ok(),
        };
        Poll::Ready(output.ok_or(error::Elapsed(())))
    }
}

/// What [`interval`] makes.
#[derive(Debug)]
pub(crate) enum Interval {
    Tokio(tokio::time::Interval),
    Waterwheel(waterwheel::Interval),
}

/// Calls the method of this name of either library.
macro_rules! of_either {
    ($interval:expr, $method:ident($($argument:expr),*)) => {
        match $interval {
            Interval::Tokio(interval) => interval.$method($($argument),*),
            Interval::Waterwheel(interval) => interval.$method($($argument),*),
        }
    };
}

impl Interval {
    pub(crate) async fn tick(&mut self) -> Instant {
        std::future::poll_fn(|context| self.poll_tick(context)).await
    }

    pub(crate) fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        of_either!(self, poll_tick(context))
    }

    pub(crate) fn reset(&mut self) {
        of_either!(self, reset());
    }

    pub(crate) fn reset_immediately(&mut self) {
        of_either!(self, reset_immediately());
    }

    pub(crate) fn reset_after(&mut self, delay: Duration) {
        of_either!(self, reset_after(delay));
    }

    pub(crate) fn reset_at(&mut self, deadline: Instant) {
        of_either!(self, reset_at(deadline));
    }

    pub(crate) fn period(&self) -> Duration {
        of_either!(self, period())
    }

    pub(crate) fn missed_tick_behavior(&self) -> MissedTickBehavior {
        match self {
            Interval::Tokio(interval) => match interval.missed_tick_behavior() {
                tokio::time::MissedTickBehavior::Burst => MissedTickBehavior::Burst,
                tokio::time::MissedTickBehavior::Delay => MissedTickBehavior::Delay,
                tokio::time::MissedTickBehavior::Skip => MissedTickBehavior::Skip,
            },
            Interval::Waterwheel(interval) => interval.missed_tick_behavior(),
        }
    }

    pub(crate) fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
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

pub(crate) mod error {
    use std::{fmt, io};

    /// The time limit came first.
    #[derive(Debug, PartialEq, Eq)]
    pub(crate) struct Elapsed(pub(super) ());

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

    // No other test makes a timer by the free functions.
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
