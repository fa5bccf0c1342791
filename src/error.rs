//! Errors: [`Elapsed`] of a timeout, [`Error`] of the fallible forms, [`BuildError`] of
//! [`Builder::start`](crate::Builder::start), [`AdvanceError`] of a [`ManualClock`](crate::ManualClock).

use std::fmt;
use std::io;

pub use crate::wheel::InvalidResolution;

/// The deadline of a timeout passed before its future was ready, or its timer was stopped.
///
/// `Display` and `Debug` print what tokio's `Elapsed` prints, unless the timer was stopped before the deadline: then
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

    /// Whether the timer was stopped before the deadline. If so, the deadline may still lie ahead.
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

/// Why a timer did not take a future or a callback.
///
/// The `try_` methods of [`Timer`](crate::Timer) return it. It has the methods of tokio's `time::error::Error`.
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
    /// The error of a timer that was stopped: by `shutdown`, by `drain`, or with its runtime. It is permanent.
    #[must_use]
    pub fn shutdown() -> Error {
        Error(Kind::Shutdown)
    }

    /// Whether the timer was stopped.
    #[must_use]
    pub fn is_shutdown(&self) -> bool {
        self.0 == Kind::Shutdown
    }

    /// The error of a timer that has reached its `max_pending`. It is over as soon as one of the timer's futures has
    /// completed or is dropped, or one of its callbacks has begun to run or is cancelled. To shed load, drop the work that asked for the future.
    #[must_use]
    pub fn at_capacity() -> Error {
        Error(Kind::AtCapacity)
    }

    /// Whether the timer has reached its `max_pending`.
    #[must_use]
    pub fn is_at_capacity(&self) -> bool {
        self.0 == Kind::AtCapacity
    }

    /// The error of an invalid argument: an interval with a period of zero.
    #[must_use]
    pub fn invalid() -> Error {
        Error(Kind::Invalid)
    }

    /// The error of a `min` that is more than its `max`.
    pub(crate) fn invalid_range() -> Error {
        Error(Kind::InvalidRange)
    }

    /// Whether an argument was invalid: a period of zero, or a `min` that is more than its `max`.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(self.0, Kind::Invalid | Kind::InvalidRange)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Shutdown => {
                "the timer was stopped, by `shutdown`, by `drain` or with its runtime, and takes \
                 nothing new: start another one with `Timer::builder()`"
            }
            Kind::AtCapacity => {
                "the timer has reached its `max_pending`: wait until one of its futures has completed, \
                 drop some, or build the timer with a higher bound"
            }
            Kind::Invalid => "`period` must be non-zero.",
            Kind::InvalidRange => "`min` must not be more than `max`: swap the two",
        })
    }
}

impl std::error::Error for Error {}

/// Why a timer was not started: a setting of its [`Builder`](crate::Builder) is invalid, or there is no runtime.
///
/// `Display` says what is wrong and what to do. There is no [`source`](std::error::Error::source) beneath it.
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
    /// Whether the resolution is out of range or does not divide a second.
    #[must_use]
    pub fn is_resolution(&self) -> bool {
        matches!(self.0, BuildKind::Resolution(_))
    }

    /// Whether the number of shards is out of range, or more than one on a manual clock.
    #[must_use]
    pub fn is_shards(&self) -> bool {
        matches!(
            self.0,
            BuildKind::ZeroShards | BuildKind::ManyShards | BuildKind::ShardsOfManualClock
        )
    }

    /// Whether `max_pending` is zero.
    #[must_use]
    pub fn is_max_pending(&self) -> bool {
        self.0 == BuildKind::ZeroMaxPending
    }

    /// Whether there was no runtime to start on.
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
                "a timer needs at least one shard: leave `shards` out for one a worker"
            }
            BuildKind::ManyShards => {
                "a timer has at most 1024 shards: leave `shards` out for one a worker"
            }
            BuildKind::ZeroMaxPending => {
                "a timer with a `max_pending` of zero could take nothing: leave it out for no bound"
            }
            BuildKind::ShardsOfManualClock => {
                "a timer on a manual clock has one shard, which the clock turns in order: leave \
                 `shards` out"
            }
            BuildKind::NoRuntime => {
                "no tokio runtime here to start the timer on: call `start` within one, or \
                 `start_on` with its handle"
            }
        })
    }
}

// No `source`: `Display` prints the `InvalidResolution`, and a report of the whole chain must not print it twice.
impl std::error::Error for BuildError {}

/// Why a [`ManualClock`](crate::ManualClock) was not advanced. It stands where it stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdvanceError(AdvanceKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdvanceKind {
    Advancing,
    OutOfRange,
}

impl AdvanceError {
    /// Whether the clock is being advanced: by another thread, or by this one, which calls from a waker.
    #[must_use]
    pub fn is_advancing(&self) -> bool {
        self.0 == AdvanceKind::Advancing
    }

    /// Whether the clock would be further from where it began than it can count.
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
                "the clock is being advanced, by another thread or by the caller of this waker: \
                 advance it from one thread, and not from within a waker"
            }
            AdvanceKind::OutOfRange => {
                "the clock cannot be advanced so far: more than 584 years from where it began, or \
                 beyond the range of `Instant`"
            }
        })
    }
}

impl std::error::Error for AdvanceError {}
