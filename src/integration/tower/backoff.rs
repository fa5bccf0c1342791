//! Exponential backoff for `tower::retry`, on waterwheel's timers. Requires the feature `tower-retry`.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ::tower::retry::backoff::{Backoff, MakeBackoff};
use ::tower::util::rng::{HasherRng, Rng};
use tokio::time::Duration;

use crate::{Sleep, Timer};

/// Creates [`ExponentialBackoff`]s, one for each request. Requires the feature `tower-retry`.
///
/// Names, semantics and defaults are those of `tower::retry::backoff`, so that changing the `use` line is enough. There is one
/// difference: all backoffs of a maker, and of its clones, draw their random numbers from one shared source. In tower each
/// backoff starts with the same numbers, since `Retry` clones its policy for each request, and requests that fail together also
/// retry together.
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
/// let mut backoff = maker.make_backoff(); // In a policy: once per request.
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
    /// Creates a maker of backoffs on the runtime's timer.
    ///
    /// The first delay is `min`, and each delay is twice as long as the previous one, up to `max`. A random duration is added to
    /// each, evenly distributed between zero and `jitter` times the delay; the sum is limited to `max`.
    ///
    /// # Errors
    ///
    /// Returns an error if `min` is greater than `max` or `max` is zero ([`InvalidBackoff::is_range`]), or if `jitter` is not
    /// between 0 and 100 ([`InvalidBackoff::is_jitter`]).
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

    /// Uses a timer of your own.
    ///
    /// If that timer was stopped or has reached its `max_pending`, `next_backoff` panics, like [`Timer::sleep`]: use a timer
    /// without a `max_pending` that outlives the requests.
    #[must_use]
    pub fn on(mut self, timer: &Timer) -> ExponentialBackoffMaker<R> {
        self.timer = Some(timer.clone());
        self
    }
}

/// The default starts at 50 ms, has no practical upper limit, and a jitter of 0.99.
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

/// Clones share the source of random numbers.
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

/// A jittered exponential backoff on waterwheel's timers, created by [`ExponentialBackoffMaker`]. Requires the feature
/// `tower-retry`.
///
/// The jitter keeps clients that failed together from retrying together, as described by [AWS].
///
/// [AWS]: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
///
/// # Panics
///
/// `next_backoff` panics in the same cases as [`sleep`](crate::sleep()), or as [`Timer::sleep`] if it uses a timer of your own.
#[derive(Debug)]
pub struct ExponentialBackoff<R = HasherRng> {
    maker: ExponentialBackoffMaker<R>,
    retries: u32,
}

/// A clone starts over, as required by [`Backoff`], and shares the source of random numbers.
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

/// The error of a backoff whose settings are invalid. Requires the feature `tower-retry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidBackoff(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Range,
    Jitter,
}

impl InvalidBackoff {
    /// Returns `true` if `min` is greater than `max`, or `max` is zero.
    #[must_use]
    pub fn is_range(&self) -> bool {
        self.0 == Kind::Range
    }

    /// Returns `true` if the jitter is not between 0 and 100.
    #[must_use]
    pub fn is_jitter(&self) -> bool {
        self.0 == Kind::Jitter
    }
}

impl fmt::Display for InvalidBackoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Range => "`max` must be greater than zero and not less than `min`",
            Kind::Jitter => "`jitter` must be a number from 0 to 100",
        })
    }
}

impl std::error::Error for InvalidBackoff {}
