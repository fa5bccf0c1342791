use std::fmt;
use std::sync::{Arc, Weak};

use tokio::time::{Duration, Instant};

use super::machine_now;
use crate::error::{AdvanceError, AdvanceKind};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A clock that stands still until it is advanced: virtual time for tests and simulations, on every flavor of runtime.
///
/// A timer gets it from [`Builder::clock`](crate::Builder::clock). It needs neither tokio's feature `test-util` nor a
/// single-threaded runtime, and the other timers of the process keep running in real time. Clones are the same clock, and several
/// timers may share it.
///
/// # Advancing
///
/// [`advance`](ManualClock::advance) first moves the clock to its new time, and then fires everything that comes due, on the
/// thread that calls it. It fires in order of tick, also across timers, and equal ticks of a timer first in, first out. It
/// returns when it has called all wakers.
///
/// Whatever a waker or a task arms meanwhile is measured from the new time, on whichever thread it runs, so the outcome does not
/// depend on how fast the workers are. To let each task run at its own time, use
/// [`advance_to_next`](ManualClock::advance_to_next), and let the tasks run in between.
///
/// The clock never moves by itself. Unlike tokio's paused clock, it does not jump to the next deadline when all tasks are idle. A
/// task whose deadline the test never reaches waits forever, so limit the wait for it by a timeout in real time.
///
/// # Rules
///
/// - Only one thread may advance the clock at a time, and a waker that is called by an advance must not advance it again:
///   [`try_advance`](ManualClock::try_advance) returns an error, and `advance` panics. Everything else is allowed in a waker,
///   including arming, cancelling and reading the time.
/// - A timer on this clock has one shard, and its [`Waking`](crate::Waking) has no effect.
/// - Its default resolution is a millisecond, as on a clock that tokio can pause.
/// - Read the time by [`now`](ManualClock::now) or [`Timer::now`](crate::Timer::now). `Instant::now()` reads another clock.
///
/// # Examples
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use waterwheel::{Duration, ManualClock, Timer};
///
/// let clock = ManualClock::new();
/// let timer = Timer::builder().clock(clock.clone()).start()?;
/// let start = clock.now();
/// let mut day = tokio::spawn(timer.sleep(Duration::from_secs(86_400)));
/// while timer.metrics().pending() == 0 {
///     tokio::task::yield_now().await; // until the task has armed it
/// }
///
/// clock.advance(Duration::from_secs(86_399));
/// assert!(!day.is_finished());
/// assert_eq!(clock.advance_to_next(), Some(start + Duration::from_secs(86_400)));
/// day.await?; // a day has passed, in no time
/// # Ok(())
/// # }
/// ```
///
/// # Prior art
///
/// The mock clocks of governor and of Go's `clockwork`, and tokio's `advance`.
#[derive(Clone)]
pub struct ManualClock(Arc<Inner>);

struct Inner {
    start: Instant,
    /// Since `start`.
    nanos: AtomicU64,
    is_advancing: AtomicBool,
    timers: Mutex<Vec<Weak<dyn Turned>>>,
}

/// A timer, as its clock sees it.
pub(crate) trait Turned: Send + Sync {
    /// When it is to be turned next; not after its earliest deadline. `None` if it has nothing to turn for.
    fn next(&self) -> Option<Instant>;

    /// The tick at which its earliest pending timer is due. `None` if no timer is pending, or beyond the range of `Instant`.
    fn earliest(&self) -> Option<Instant>;

    /// Fires all that is due at `now`, and returns when all wakers have been called.
    fn turn(&self, now: Instant);
}

impl ManualClock {
    /// Creates a clock that stands at the present instant.
    #[must_use]
    pub fn new() -> ManualClock {
        ManualClock(Arc::new(Inner {
            start: Instant::from_std(machine_now()),
            nanos: AtomicU64::new(0),
            is_advancing: AtomicBool::new(false),
            timers: Mutex::new(Vec::new()),
        }))
    }

    /// Returns the time at which the clock stands.
    #[must_use]
    pub fn now(&self) -> Instant {
        // The sum was checked when the clock was moved.
        self.0.start + Duration::from_nanos(self.nanos())
    }

    /// Advances the clock, and fires everything that comes due. Returns when all wakers have been called.
    ///
    /// A waker that panics does not keep the others from being called; the panic hook reports it.
    ///
    /// # Panics
    ///
    /// Panics if the clock is being advanced already, by another thread or by this one from within a waker, or if the new time
    /// would be out of range. See [`try_advance`](ManualClock::try_advance).
    #[track_caller]
    pub fn advance(&self, duration: Duration) {
        expect(self.try_advance(duration));
    }

    /// Advances the clock as [`advance`](ManualClock::advance) does, or returns an error and leaves the clock where it was.
    ///
    /// ```
    /// use waterwheel::{Duration, ManualClock};
    ///
    /// let clock = ManualClock::new();
    /// let before = clock.now();
    /// assert!(clock.try_advance(Duration::MAX).unwrap_err().is_out_of_range());
    /// assert_eq!(clock.now(), before);
    /// ```
    ///
    /// # Errors
    ///
    /// [`AdvanceError::is_advancing`] if the clock is being advanced already: by another thread, or by this one if the call comes
    /// from a waker. [`AdvanceError::is_out_of_range`] if the clock would be more than 584 years from where it began, or beyond
    /// the range of `Instant`.
    pub fn try_advance(&self, duration: Duration) -> Result<(), AdvanceError> {
        let advance = Advance::begin(self)?;
        let target = self.sum(duration).ok_or(AdvanceKind::OutOfRange)?;
        advance.set(target);
        // Tick by tick: so the order is kept across timers.
        while let Some(next) = advance.next().filter(|&next| next <= self.now()) {
            advance.turn(next, |timer| timer.next().is_some_and(|at| at <= next));
        }
        // All of them, whatever their `next` says: a future that read the clock before this may arm under an earlier tick. With the
        // wheel's hand beyond that, it finds that it is due.
        advance.turn(self.now(), |_| true);
        Ok(())
    }

    /// Advances the clock to the next tick at which a timer is due, fires what is due then, and returns the new time.
    ///
    /// Returns `None`, and leaves the clock where it was, if no timer is pending, or only timers beyond the clock's range.
    ///
    /// # Panics
    ///
    /// Panics if the clock is being advanced already, as [`advance`](ManualClock::advance) does.
    #[track_caller]
    pub fn advance_to_next(&self) -> Option<Instant> {
        expect(self.try_advance_to_next())
    }

    /// Advances the clock as [`advance_to_next`](ManualClock::advance_to_next) does, or returns an error and leaves the clock
    /// where it was.
    ///
    /// # Errors
    ///
    /// [`AdvanceError::is_advancing`], as for [`try_advance`](ManualClock::try_advance).
    pub fn try_advance_to_next(&self) -> Result<Option<Instant>, AdvanceError> {
        let advance = Advance::begin(self)?;
        let timers = advance.timers();
        let earliest = timers.iter().filter_map(|timer| timer.earliest()).min();
        let Some(nanos) = earliest.and_then(|at| self.nanos_at(at)) else {
            return Ok(None);
        };
        advance.set(nanos);
        advance.turn(self.now(), |_| true);
        Ok(Some(self.now()))
    }

    /// Where the clock began.
    pub(super) fn start(&self) -> Instant {
        self.0.start
    }

    /// From now on the clock turns this timer.
    pub(crate) fn add(&self, timer: Weak<dyn Turned>) {
        let mut timers = self.0.timers.lock();
        timers.retain(|timer| timer.strong_count() > 0);
        timers.push(timer);
    }

    /// An instant in nanoseconds since the clock's start. `None` beyond its range.
    fn nanos_at(&self, instant: Instant) -> Option<u64> {
        let since = instant.saturating_duration_since(self.0.start);
        u64::try_from(since.as_nanos()).ok()
    }

    fn nanos(&self) -> u64 {
        // Pairs with the write in `set`. (What makes a race with an advance safe is the shard's lock.)
        self.0.nanos.load(Ordering::Acquire)
    }

    /// Where the clock would be, in nanoseconds since its start.
    fn sum(&self, duration: Duration) -> Option<u64> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        let nanos = self.nanos().checked_add(nanos)?;
        self.0.start.checked_add(Duration::from_nanos(nanos))?;
        Some(nanos)
    }
}

impl Default for ManualClock {
    fn default() -> ManualClock {
        ManualClock::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}

#[track_caller]
fn expect<T>(advanced: Result<T, AdvanceError>) -> T {
    match advanced {
        Ok(advanced) => advanced,
        Err(error) => panic!("{error}"),
    }
}

/// One thread moves the clock, until this is dropped.
struct Advance<'a>(&'a ManualClock);

impl Advance<'_> {
    fn begin(clock: &ManualClock) -> Result<Advance<'_>, AdvanceError> {
        // Acquire pairs with the release of the last advance's end.
        if clock.0.is_advancing.swap(true, Ordering::Acquire) {
            return Err(AdvanceKind::Advancing.into());
        }
        Ok(Advance(clock))
    }

    /// The timers, held outside of the lock: to let go of the last hold on one may run foreign code.
    fn timers(&self) -> Vec<Arc<dyn Turned>> {
        let timers = self.0.0.timers.lock();
        timers.iter().filter_map(Weak::upgrade).collect()
    }

    /// When a timer is to be turned next; `None` if none is.
    fn next(&self) -> Option<Instant> {
        let timers = self.timers();
        timers.iter().filter_map(|timer| timer.next()).min()
    }

    /// Moves the clock, unless it is further.
    fn set(&self, nanos: u64) {
        let nanos = nanos.max(self.0.nanos());
        self.0.0.nanos.store(nanos, Ordering::Release);
    }

    /// Turns the timers that `is_due` to `at`.
    fn turn(&self, at: Instant, is_due: impl Fn(&dyn Turned) -> bool) {
        for timer in self.timers() {
            if is_due(&*timer) {
                timer.turn(at);
            }
        }
    }
}

impl Drop for Advance<'_> {
    fn drop(&mut self) {
        self.0.0.is_advancing.store(false, Ordering::Release);
    }
}
