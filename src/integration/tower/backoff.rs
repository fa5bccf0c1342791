//! The delays between the retries of `tower::retry`, on waterwheel's timers; with the feature `tower-retry`.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ::tower::retry::backoff::{Backoff, MakeBackoff};
use ::tower::util::rng::{HasherRng, Rng};
use tokio::time::Duration;

use crate::{Sleep, Timer};

/// Makes [`ExponentialBackoff`]s, one for each request.
///
/// With the names, the meaning and the default of `tower::retry::backoff`, so that changing the `use` line is enough. But all
/// backoffs of a maker, and all clones of it, take their random numbers in turn from one source. Those of tower have the same
/// numbers each: `Retry` clones its policy for each request, and requests that fail together come again together.
///
/// ```
/// use tower::retry::backoff::{Backoff, MakeBackoff};
/// use tower::util::rng::HasherRng;
/// use waterwheel::tower::backoff::{ExponentialBackoffMaker, InvalidBackoff};
/// use waterwheel::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), InvalidBackoff> {
/// let (least, most) = (Duration::from_millis(1), Duration::from_millis(50));
/// let mut maker = ExponentialBackoffMaker::new(least, most, 0.5, HasherRng::default())?;
/// let mut backoff = maker.make_backoff(); // In a policy, for each request.
/// backoff.next_backoff().await; // 1 to 1.5 ms
/// backoff.next_backoff().await; // 2 to 3 ms
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ExponentialBackoffMaker<R = HasherRng> {
    range: Range,
    timer: Option<Timer>,
    rng: Arc<Mutex<R>>,
}

impl<R: Rng> ExponentialBackoffMaker<R> {
    /// The first delay is `min`, and each next one twice as long, at most `max`. To each, a random part of it is added: evenly
    /// distributed from none to `jitter` times the delay, with `max` as the limit of the sum. The delays run on the runtime's timer.
    ///
    /// # Errors
    ///
    /// [`InvalidBackoff::is_range`] if `min` is more than `max`, or `max` is zero; [`InvalidBackoff::is_jitter`] unless the jitter is
    /// from 0 to 100.
    pub fn new(
        min: Duration,
        max: Duration,
        jitter: f64,
        rng: R,
    ) -> Result<ExponentialBackoffMaker<R>, InvalidBackoff> {
        Ok(ExponentialBackoffMaker {
            range: Range::new(min, max, jitter)?,
            timer: None,
            rng: Arc::new(Mutex::new(rng)),
        })
    }

    /// The same on a timer of your own. If it was stopped or has reached its `max_pending`, `next_backoff` panics, as
    /// [`Timer::sleep`] does: give it a timer without a bound that outlives the requests.
    #[must_use]
    pub fn on(mut self, timer: &Timer) -> ExponentialBackoffMaker<R> {
        self.timer = Some(timer.clone());
        self
    }
}

/// From 50 ms on, without a bound in practice, and a jitter of 0.99.
impl Default for ExponentialBackoffMaker {
    fn default() -> ExponentialBackoffMaker {
        ExponentialBackoffMaker {
            range: Range {
                min: Duration::from_millis(50),
                max: Duration::from_millis(u64::MAX),
                jitter: 0.99,
            },
            timer: None,
            rng: Arc::default(),
        }
    }
}

/// The clone shares the source of random numbers.
impl<R> Clone for ExponentialBackoffMaker<R> {
    fn clone(&self) -> ExponentialBackoffMaker<R> {
        ExponentialBackoffMaker {
            range: self.range,
            timer: self.timer.clone(),
            rng: Arc::clone(&self.rng),
        }
    }
}

impl<R: Rng> MakeBackoff for ExponentialBackoffMaker<R> {
    type Backoff = ExponentialBackoff<R>;

    fn make_backoff(&mut self) -> ExponentialBackoff<R> {
        ExponentialBackoff {
            maker: self.clone(),
            retries: 0,
        }
    }
}

/// A jittered exponential backoff, whose delays are waterwheel's sleeps. Made by [`ExponentialBackoffMaker`].
///
/// The jitter keeps clients that failed together from coming again together, as [AWS] describes.
///
/// [AWS]: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
///
/// # Panics
///
/// `next_backoff` panics where [`sleep`](crate::sleep()) does, or [`Timer::sleep`] if it is on a timer of your own.
#[derive(Debug)]
pub struct ExponentialBackoff<R = HasherRng> {
    maker: ExponentialBackoffMaker<R>,
    retries: u32,
}

/// The clone begins anew, as [`Backoff`] asks for, and shares the source of random numbers.
impl<R> Clone for ExponentialBackoff<R> {
    fn clone(&self) -> ExponentialBackoff<R> {
        ExponentialBackoff {
            maker: self.maker.clone(),
            retries: 0,
        }
    }
}

impl<R: Rng> Backoff for ExponentialBackoff<R> {
    type Future = Sleep;

    fn next_backoff(&mut self) -> Sleep {
        let ExponentialBackoffMaker { range, timer, rng } = &self.maker;
        let random = rng
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next_f64();
        let delay = range.delay(self.retries, random);
        self.retries = self.retries.saturating_add(1);
        match timer {
            Some(timer) => timer.sleep(delay),
            None => crate::sleep(delay),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Range {
    min: Duration,
    max: Duration,
    jitter: f64,
}

impl Range {
    fn new(min: Duration, max: Duration, jitter: f64) -> Result<Range, InvalidBackoff> {
        if min > max || max.is_zero() {
            return Err(InvalidBackoff(Kind::Range));
        }
        // Not so if it is no number.
        if !(0.0..=100.0).contains(&jitter) {
            return Err(InvalidBackoff(Kind::Jitter));
        }
        Ok(Range { min, max, jitter })
    }

    fn delay(&self, retries: u32, random: f64) -> Duration {
        let factor = 2_u32.checked_pow(retries);
        let delay = factor.and_then(|factor| self.min.checked_mul(factor));
        let delay = match delay {
            Some(delay) => delay.min(self.max),
            // Twice nothing is nothing, however often.
            None if self.min.is_zero() => Duration::ZERO,
            None => self.max,
        };
        let rest = self.max - delay;
        let jitter = delay.as_secs_f64() * self.jitter * random;
        delay + Duration::try_from_secs_f64(jitter).map_or(rest, |jitter| jitter.min(rest))
    }
}

/// Why no backoff was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidBackoff(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Range,
    Jitter,
}

impl InvalidBackoff {
    /// Whether `min` is more than `max`, or `max` is zero.
    #[must_use]
    pub fn is_range(&self) -> bool {
        self.0 == Kind::Range
    }

    /// Whether the jitter is not from 0 to 100.
    #[must_use]
    pub fn is_jitter(&self) -> bool {
        self.0 == Kind::Jitter
    }
}

impl fmt::Display for InvalidBackoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Range => "a backoff needs a `max` that is not zero and not less than `min`",
            Kind::Jitter => "the jitter of a backoff is a number from 0 to 100",
        })
    }
}

impl std::error::Error for InvalidBackoff {}
