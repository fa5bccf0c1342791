use std::fmt;
use std::time::Duration;

/// A point in a wheel's time: the number of ticks since the wheel's own zero.
///
/// One tick is one unit of the wheel's [`Resolution`]. A wheel has no clock: its
/// owner decides which instant is tick zero, and rounds deadlines *up* to the next tick and the
/// current time *down*. Then nothing expires early.
///
/// The distance between two points is a [`Ticks`].
///
/// ```
/// use waterwheel::wheel::{Tick, Ticks};
///
/// let start = Tick::new(1_500);
/// let end = start.saturating_add(Ticks::new(20));
/// assert_eq!(end, Tick::new(1_520));
/// assert_eq!(end.saturating_since(start), Ticks::new(20));
/// assert_eq!(start.saturating_since(end), Ticks::ZERO);
/// assert_eq!(start.saturating_sub(Ticks::new(2_000)), Tick::ZERO);
/// assert_eq!((end.get(), end.to_string()), (1_520, "1520".to_owned()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(u64);

impl Tick {
    /// The start of a wheel's time.
    pub const ZERO: Tick = Tick(0);
    /// The end of a wheel's time.
    pub const MAX: Tick = Tick(u64::MAX);

    /// Creates the point that is this many ticks after zero.
    #[must_use]
    pub const fn new(ticks: u64) -> Tick {
        Tick(ticks)
    }

    /// Returns the number of ticks since zero.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the point `span` later, or [`Tick::MAX`] if that is beyond the end of time.
    #[must_use]
    pub const fn saturating_add(self, span: Ticks) -> Tick {
        Tick(self.0.saturating_add(span.get()))
    }

    /// Returns the point `span` earlier, or [`Tick::ZERO`] if that is before the start of time.
    #[must_use]
    pub const fn saturating_sub(self, span: Ticks) -> Tick {
        Tick(self.0.saturating_sub(span.get()))
    }

    /// Returns the span from `earlier` to this point, or [`Ticks::ZERO`] if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Tick) -> Ticks {
        Ticks::new(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tick({})", self.0)
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A span of a wheel's time: a number of ticks.
///
/// A point in time is a [`Tick`], and the difference of two points is a span. The
/// wheel's [`Resolution`] is the length of one tick.
///
/// ```
/// use waterwheel::wheel::{Resolution, Tick, Ticks, Wheel};
///
/// let mut wheel = Wheel::new(Resolution::MILLISECOND);
/// // In five seconds, on a wheel of milliseconds.
/// let delay = Ticks::new(5 * u64::from(wheel.resolution().ticks_per_second()));
/// wheel.insert(wheel.now().saturating_add(delay), "tea");
/// assert_eq!(wheel.next_expiration(), Some(Tick::new(5_000)));
/// assert_eq!((delay.get(), delay.to_string()), (5_000, "5000".to_owned()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticks(u64);

impl Ticks {
    /// No time at all.
    pub const ZERO: Ticks = Ticks(0);
    /// The longest span: from [`Tick::ZERO`](super::Tick::ZERO) to [`Tick::MAX`](super::Tick::MAX).
    pub const MAX: Ticks = Ticks(u64::MAX);

    /// Creates a span of this many ticks.
    #[must_use]
    pub const fn new(ticks: u64) -> Ticks {
        Ticks(ticks)
    }

    /// Returns the number of ticks in the span.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticks({})", self.0)
    }
}

impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// The length of one tick: from 100 µs to 1 s, such that a second is a whole number of ticks.
///
/// ```
/// use std::time::Duration;
/// use waterwheel::wheel::Resolution;
///
/// let fine = Resolution::new(Duration::from_micros(100))?;
/// assert_eq!(fine.ticks_per_second(), 10_000);
/// assert_eq!(Resolution::default(), Resolution::MILLISECOND);
///
/// // 3 ms does not divide a second.
/// assert!(Resolution::new(Duration::from_millis(3)).is_err());
/// # Ok::<(), waterwheel::wheel::InvalidResolution>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Resolution {
    ticks_per_second: u32,
    nanos: u32,
}

impl Resolution {
    /// One millisecond, the default of a wheel. The default of a [`Timer`](crate::Timer) is
    /// [different](crate::Builder::resolution).
    pub const MILLISECOND: Resolution = Resolution {
        ticks_per_second: 1_000,
        nanos: 1_000_000,
    };

    /// 100 µs.
    pub(crate) const FINEST: Resolution = Resolution {
        ticks_per_second: 10_000,
        nanos: 100_000,
    };

    const FINEST_NANOS: u128 = Self::FINEST.nanos as u128;
    const COARSEST_NANOS: u128 = NANOS_PER_SECOND as u128;

    /// Creates the resolution whose ticks have the length `tick`.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidResolution`] if `tick` is shorter than 100 µs or longer than 1 s, or does not divide a
    /// second into whole ticks.
    pub fn new(tick: Duration) -> Result<Resolution, InvalidResolution> {
        let nanos = tick.as_nanos();
        if !(Self::FINEST_NANOS..=Self::COARSEST_NANOS).contains(&nanos)
            || Self::COARSEST_NANOS % nanos != 0
        {
            return Err(InvalidResolution { tick });
        }
        // In range of `u32`: at most 1 000 000 000.
        let nanos = nanos as u32;
        Ok(Resolution {
            ticks_per_second: NANOS_PER_SECOND / nanos,
            nanos,
        })
    }

    /// Returns the length of one tick.
    #[must_use]
    pub const fn tick(self) -> Duration {
        Duration::new(
            (self.nanos / NANOS_PER_SECOND) as u64,
            self.nanos % NANOS_PER_SECOND,
        )
    }

    /// Returns the number of ticks in a second, which is also the number of slots of the first dial.
    #[must_use]
    pub const fn ticks_per_second(self) -> u32 {
        self.ticks_per_second
    }

    /// The length of one tick in nanoseconds.
    pub(crate) const fn nanos(self) -> u32 {
        self.nanos
    }
}

impl Default for Resolution {
    /// Returns [`Resolution::MILLISECOND`].
    fn default() -> Self {
        Resolution::MILLISECOND
    }
}

impl fmt::Debug for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Resolution").field(&self.tick()).finish()
    }
}

/// The error of [`Resolution::new`]: the tick is shorter than 100 µs or longer than 1 s, or does not divide a
/// second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidResolution {
    tick: Duration,
}

impl fmt::Display for InvalidResolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a resolution of {:?} is not possible: choose one from 100 µs to 1 s that divides a \
             second into whole ticks, such as 100 µs, 1 ms, 10 ms or 1 s",
            self.tick
        )
    }
}

impl std::error::Error for InvalidResolution {}

/// A number to divide by, which stays the same for long and is not known to the compiler.
///
/// Divides by multiplying with the reciprocal, in 3 cycles where a division takes about 15. (A separate branch for
/// the most frequent divisor does not help: the compiler sees that both branches compute the same, and merges them.)
#[derive(Debug, Clone, Copy)]
pub(crate) struct Divisor {
    divisor: u64,
    /// 2⁶⁴ / `divisor`, rounded down, and at most 2⁶⁴ − 1.
    reciprocal: u64,
}

impl Divisor {
    /// For a divisor from 1 to 2³⁰.
    pub(crate) fn new(divisor: u32) -> Divisor {
        assert!(divisor > 0 && divisor <= 1 << 30);
        Divisor {
            divisor: u64::from(divisor),
            reciprocal: u64::MAX / u64::from(divisor),
        }
    }

    pub(crate) fn get(self) -> u64 {
        self.divisor
    }

    /// `dividend / divisor`
    #[inline]
    pub(crate) fn divide(self, dividend: u64) -> u64 {
        // With r the reciprocal and r × divisor = 2⁶⁴ − 1 − e, where e < divisor: for a dividend n of
        // quotient q, (n + 1) × r is less than (q + 1) × 2⁶⁴, and at least q × 2⁶⁴ if r is not less
        // than q × (1 + e), which is at most n.
        if dividend >= self.reciprocal {
            return self.divide_large(dividend);
        }
        let product = u128::from(dividend + 1) * u128::from(self.reciprocal);
        (product >> u64::BITS) as u64
    }

    #[cold]
    fn divide_large(self, dividend: u64) -> u64 {
        dividend / self.divisor
    }

    /// `dividend % divisor`
    #[inline]
    pub(crate) fn remainder(self, dividend: u64) -> u64 {
        dividend - self.divide(dividend) * self.divisor
    }
}

#[cfg(test)]
mod tests {
    use super::{Tick, Ticks};

    #[test]
    fn a_tick_shows_its_number_and_obeys_the_width() {
        let tick = Tick::new(1_500);
        assert_eq!(
            format!("{tick}|{tick:>6}|{tick:?}"),
            "1500|  1500|Tick(1500)"
        );
    }

    #[test]
    fn sums_and_differences_saturate_at_the_ends_of_time() {
        let (first, last) = (Tick::ZERO, Tick::MAX);
        assert_eq!(last.saturating_add(Ticks::new(1)), last);
        assert_eq!(first.saturating_sub(Ticks::new(1)), first);
        assert_eq!(first.saturating_since(last), Ticks::ZERO);
        assert_eq!(last.saturating_since(first), Ticks::MAX);
        assert_eq!(first.saturating_add(Ticks::MAX), last);
        assert_eq!(last.saturating_sub(Ticks::MAX), first);
    }
}

#[cfg(test)]
mod ticks_tests {
    use super::Ticks;

    #[test]
    fn a_span_shows_its_number_and_obeys_the_width() {
        let span = Ticks::new(1_500);
        assert_eq!(
            format!("{span}|{span:>6}|{span:?}"),
            "1500|  1500|Ticks(1500)"
        );
    }
}

#[cfg(test)]
mod divisor_tests {
    use super::Divisor;

    #[test]
    fn divides_as_division_does() {
        for divisor in [
            1,
            2,
            3,
            7,
            10,
            60,
            999,
            1_000,
            10_000,
            100_000,
            1_000_000,
            999_999_999,
            1 << 30,
        ] {
            let by = Divisor::new(divisor);
            let divisor = u64::from(divisor);
            for quotient in [
                0,
                1,
                2,
                59,
                1_000_003,
                by.reciprocal / divisor,
                u64::MAX / divisor,
            ] {
                let exact = quotient * divisor;
                for dividend in [exact.wrapping_sub(1), exact, exact.saturating_add(1)] {
                    assert_eq!(
                        by.divide(dividend),
                        dividend / divisor,
                        "{dividend} / {divisor}"
                    );
                    assert_eq!(by.remainder(dividend), dividend % divisor);
                }
            }
        }
    }
}
