use std::fmt;

use super::Ticks;

/// A point in a wheel's time: the number of ticks since the wheel's own zero.
///
/// One tick is one unit of the wheel's [`Resolution`](super::Resolution). A wheel has no clock: its
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
