//! The application's own `time` module: the rest of the application says `crate::time` where it said `tokio::time`.
//!
//! [`choose`] picks the timers once, at start. Each type has a variant for either library, so no call is boxed. The errors
//! and the choice of what a late interval does are the module's own, since each library has types of its own for them.

use std::fmt;
use std::future::Future;
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

pub(crate) fn timeout<F: Future>(limit: Duration, work: F) -> Timeout<F> {
    chosen().timeout(limit, work)
}

pub(crate) fn interval(period: Duration) -> Interval {
    chosen().interval(period)
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

    pub(crate) fn timeout<F: Future>(self, limit: Duration, work: F) -> Timeout<F> {
        match self {
            Timers::Tokio => Timeout::Tokio {
                timeout: tokio::time::timeout(limit, work),
            },
            Timers::Waterwheel => Timeout::Waterwheel {
                timeout: waterwheel::timeout(limit, work),
            },
        }
    }

    pub(crate) fn interval(self, period: Duration) -> Interval {
        match self {
            Timers::Tokio => Interval::Tokio(tokio::time::interval(period)),
            Timers::Waterwheel => Interval::Waterwheel(waterwheel::interval(period)),
        }
    }
}

pin_project! {
    /// The future of [`sleep`].
    #[project = SleepProjection]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub(crate) enum Sleep {
        Tokio { #[pin] sleep: tokio::time::Sleep },
        Waterwheel { #[pin] sleep: waterwheel::Sleep },
    }
}

impl Sleep {
    /// Moves the deadline, as both libraries' `reset` do.
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
    #[project = TimeoutProjection]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub(crate) enum Timeout<F> {
        Tokio { #[pin] timeout: tokio::time::Timeout<F> },
        Waterwheel { #[pin] timeout: waterwheel::Timeout<F> },
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let output = match self.project() {
            TimeoutProjection::Tokio { timeout } => ready!(timeout.poll(context)).ok(),
            TimeoutProjection::Waterwheel { timeout } => ready!(timeout.poll(context)).ok(),
        };
        Poll::Ready(output.ok_or(Elapsed))
    }
}

/// The time limit came first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time limit came first")
    }
}

impl std::error::Error for Elapsed {}

/// What [`interval`] makes.
pub(crate) enum Interval {
    Tokio(tokio::time::Interval),
    Waterwheel(waterwheel::Interval),
}

impl Interval {
    pub(crate) async fn tick(&mut self) -> Instant {
        match self {
            Interval::Tokio(interval) => interval.tick().await,
            Interval::Waterwheel(interval) => interval.tick().await,
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

#[cfg(test)]
mod tests {
    use std::future;
    use std::pin::pin;

    use super::*;

    const BOTH: [Timers; 2] = [Timers::Tokio, Timers::Waterwheel];

    #[tokio::test(start_paused = true)]
    async fn both_sleep_until_their_deadline() {
        for timers in BOTH {
            let start = Instant::now();
            let mut sleep = pin!(timers.sleep(Duration::from_secs(1)));
            sleep.as_mut().reset(start + Duration::from_secs(2));
            sleep.await;
            assert_eq!(start.elapsed(), Duration::from_secs(2), "{timers:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn both_limit_the_time_of_a_future() {
        for timers in BOTH {
            let limit = Duration::from_secs(1);
            assert_eq!(timers.timeout(limit, async { 42 }).await, Ok(42));
            let forever = timers.timeout(limit, future::pending::<()>());
            assert_eq!(forever.await, Err(Elapsed), "{timers:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn both_tick() {
        for timers in BOTH {
            let start = Instant::now();
            let mut interval = timers.interval(Duration::from_secs(1));
            interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
            interval.tick().await;
            tokio::time::sleep(Duration::from_millis(2500)).await;
            // The second tick is late, the third is skipped to the period's grid.
            interval.tick().await;
            assert_eq!(interval.tick().await - start, Duration::from_secs(3));
        }
    }
}
