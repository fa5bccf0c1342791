//! The error types of this crate.
//!
//! - [`Elapsed`]: a timeout has passed.
//! - [`Error`]: a timer did not accept a future or a callback.
//! - [`BuildError`]: [`Builder::start`](crate::Builder::start) could not start a timer. [`InvalidResolution`] is the case of an
//!   invalid resolution.
//! - [`AdvanceError`]: a [`ManualClock`](crate::ManualClock) was not advanced.

use std::fmt;
use std::io;

pub use crate::wheel::InvalidResolution;

/// The error of a timeout whose deadline passed before its future was ready, or whose timer was stopped.
///
/// `Display` and `Debug` print the same text as tokio's `Elapsed`, unless the timer was stopped before the deadline; in that case
/// they say so. It converts into an [`io::Error`] of kind [`TimedOut`](io::ErrorKind::TimedOut).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::{future, io};
/// use waterwheel::{Duration, Timer, timeout};
///
/// let elapsed = timeout(Duration::from_millis(5), future::pending::<()>())
///     .await
///     .unwrap_err();
/// assert_eq!(elapsed.to_string(), "deadline has elapsed");
/// assert!(!elapsed.was_stopped());
/// assert_eq!(io::Error::from(elapsed).kind(), io::ErrorKind::TimedOut);
///
/// let timer = Timer::builder().start().unwrap();
/// let hour = timer.timeout(Duration::from_secs(3600), future::pending::<()>());
/// timer.shutdown();
/// let elapsed = hour.await.unwrap_err();
/// assert_eq!(elapsed.to_string(), "the timer was stopped before the deadline");
/// assert!(elapsed.was_stopped());
/// # }
/// ```
#[derive(PartialEq, Eq)]
pub struct Elapsed {
    stopped: bool,
}

impl Elapsed {
    pub(crate) fn new(stopped: bool) -> Elapsed {
        Elapsed { stopped }
    }

    /// Returns `true` if the timer was stopped before the deadline. The deadline may then still be in the future.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        self.stopped
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `fmt` of a `str`, so that it obeys a width.
        match self.stopped {
            false => "deadline has elapsed".fmt(f),
            true => "the timer was stopped before the deadline".fmt(f),
        }
    }
}

impl fmt::Debug for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut elapsed = f.debug_tuple("Elapsed");
        match self.stopped {
            false => elapsed.field(&()).finish(),
            true => elapsed.field(&format_args!("stopped")).finish(),
        }
    }
}

impl std::error::Error for Elapsed {}

impl From<Elapsed> for io::Error {
    fn from(_: Elapsed) -> io::Error {
        io::ErrorKind::TimedOut.into()
    }
}

/// The error of a timer that did not accept a future or a callback.
///
/// It is returned by the `try_` methods of [`Timer`](crate::Timer), and has the methods of tokio's `time::error::Error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Shutdown,
    AtCapacity,
    Invalid,
    InvalidRange,
}

impl Error {
    /// Creates the error of a timer that was stopped: by `shutdown`, by `drain`, or because its runtime ended. This error is
    /// permanent.
    #[must_use]
    pub fn shutdown() -> Error {
        Error(Kind::Shutdown)
    }

    /// Returns `true` if the timer was stopped.
    #[must_use]
    pub fn is_shutdown(&self) -> bool {
        self.0 == Kind::Shutdown
    }

    /// Creates the error of a timer that has reached its `max_pending`.
    ///
    /// This error is temporary: the timer accepts a new future or callback once one of its futures has completed or been dropped,
    /// or one of its callbacks has started to run or been cancelled. To shed load, drop the work that asked for the future.
    #[must_use]
    pub fn at_capacity() -> Error {
        Error(Kind::AtCapacity)
    }

    /// Returns `true` if the timer has reached its `max_pending`.
    #[must_use]
    pub fn is_at_capacity(&self) -> bool {
        self.0 == Kind::AtCapacity
    }

    /// Creates the error of an invalid argument: an interval with a period of zero.
    #[must_use]
    pub fn invalid() -> Error {
        Error(Kind::Invalid)
    }

    /// The error of a `min` that is more than its `max`.
    pub(crate) fn invalid_range() -> Error {
        Error(Kind::InvalidRange)
    }

    /// Returns `true` if an argument was invalid: a period of zero, or a `min` that is greater than its `max`.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(self.0, Kind::Invalid | Kind::InvalidRange)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Shutdown => {
                "the timer was stopped (by `shutdown`, by `drain`, or because its runtime ended) \
                 and accepts nothing new: start another timer with `Timer::builder()`"
            }
            Kind::AtCapacity => {
                "the timer has reached its `max_pending`: wait until one of its futures or \
                 callbacks is done, drop or cancel some, or build the timer with a higher \
                 `max_pending`"
            }
            Kind::Invalid => "`period` must be non-zero.",
            Kind::InvalidRange => "`min` must not be greater than `max`: swap the two arguments",
        })
    }
}

impl std::error::Error for Error {}

/// The error of a timer that was not started, because a setting of its [`Builder`](crate::Builder) is invalid or because there is
/// no runtime.
///
/// `Display` says what is wrong and how to fix it. [`source`](std::error::Error::source) returns `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildError(BuildKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuildKind {
    Resolution(InvalidResolution),
    ZeroShards,
    ManyShards,
    ZeroMaxPending,
    ShardsOfManualClock,
    NoRuntime,
}

impl BuildError {
    /// Returns `true` if the resolution is out of range or does not divide a second.
    #[must_use]
    pub fn is_resolution(&self) -> bool {
        matches!(self.0, BuildKind::Resolution(_))
    }

    /// Returns `true` if the number of shards is out of range, or greater than one on a manual clock.
    #[must_use]
    pub fn is_shards(&self) -> bool {
        matches!(
            self.0,
            BuildKind::ZeroShards | BuildKind::ManyShards | BuildKind::ShardsOfManualClock
        )
    }

    /// Returns `true` if `max_pending` is zero.
    #[must_use]
    pub fn is_max_pending(&self) -> bool {
        self.0 == BuildKind::ZeroMaxPending
    }

    /// Returns `true` if there was no runtime to start on.
    #[must_use]
    pub fn is_no_runtime(&self) -> bool {
        self.0 == BuildKind::NoRuntime
    }
}

impl From<BuildKind> for BuildError {
    fn from(kind: BuildKind) -> BuildError {
        BuildError(kind)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            BuildKind::Resolution(invalid) => return invalid.fmt(f),
            BuildKind::ZeroShards => {
                "`shards` must be at least 1: leave `shards` out for one shard per worker"
            }
            BuildKind::ManyShards => {
                "`shards` must be at most 1024: leave `shards` out for one shard per worker"
            }
            BuildKind::ZeroMaxPending => {
                "`max_pending` must be at least 1: leave it out for no limit"
            }
            BuildKind::ShardsOfManualClock => {
                "a timer on a `ManualClock` has exactly one shard, so that timers fire in order: \
                 leave `shards` out"
            }
            BuildKind::NoRuntime => {
                "there is no tokio runtime to start the timer on: call `start` within a runtime, \
                 or `start_on` with the handle of one"
            }
        })
    }
}

// No `source`: `Display` prints the `InvalidResolution`, and a report of the whole chain must not print it twice.
impl std::error::Error for BuildError {}

/// The error of a [`ManualClock`](crate::ManualClock) that was not advanced. The clock has not moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdvanceError(AdvanceKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdvanceKind {
    Advancing,
    OutOfRange,
}

impl AdvanceError {
    /// Returns `true` if the clock was already being advanced: by another thread, or by this thread, with this call made from a
    /// waker.
    #[must_use]
    pub fn is_advancing(&self) -> bool {
        self.0 == AdvanceKind::Advancing
    }

    /// Returns `true` if the clock would have moved further from its start than it can count.
    #[must_use]
    pub fn is_out_of_range(&self) -> bool {
        self.0 == AdvanceKind::OutOfRange
    }
}

impl From<AdvanceKind> for AdvanceError {
    fn from(kind: AdvanceKind) -> AdvanceError {
        AdvanceError(kind)
    }
}

impl fmt::Display for AdvanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            AdvanceKind::Advancing => {
                "the clock is already being advanced, by another thread or by the caller of this \
                 waker: advance it from one thread at a time, and not from within a waker"
            }
            AdvanceKind::OutOfRange => {
                "the clock cannot be advanced that far: it would be more than 584 years from its \
                 start, or beyond the range of `Instant`"
            }
        })
    }
}

impl std::error::Error for AdvanceError {}
