use std::fmt;

/// A span of a wheel's time: a number of ticks.
///
/// A point in time is a [`Tick`](super::Tick), and the difference of two points is a span. The
/// wheel's [`Resolution`](super::Resolution) is the length of one tick.
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

#[cfg(test)]
mod tests {
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
