use std::fmt;

/// A point in a wheel's time: a whole number of ticks since the wheel's own zero.
///
/// One tick is one unit of the wheel's [`Resolution`](super::Resolution). A wheel has no clock;
/// whoever owns it decides what instant is tick zero and rounds: a deadline *up* to a tick, now
/// *down*, so that nothing comes up early.
///
/// ```
/// use waterwheel::wheel::Tick;
///
/// let tick = Tick::new(1_500);
/// assert_eq!(tick.get(), 1_500);
/// assert_eq!(tick.to_string(), "1500");
/// assert_eq!(tick.plus(Tick::new(1)), Tick::new(1_501));
/// assert_eq!(Tick::MAX.plus(tick), Tick::MAX);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(u64);

impl Tick {
    /// The start of a wheel's time.
    pub const ZERO: Tick = Tick(0);
    /// The end of a wheel's time; no sum goes beyond it.
    pub const MAX: Tick = Tick(u64::MAX);

    /// The tick of this number.
    #[must_use]
    pub const fn new(ticks: u64) -> Tick {
        Tick(ticks)
    }

    /// The number of this tick.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// This tick, later by as many ticks as `other` is from [`Tick::ZERO`]; saturates at
    /// [`Tick::MAX`].
    #[must_use]
    pub const fn plus(self, other: Tick) -> Tick {
        Tick(self.0.saturating_add(other.0))
    }

    /// How far this tick lies behind `earlier`, as a tick; [`Tick::ZERO`] if it does not.
    #[must_use]
    pub const fn since(self, earlier: Tick) -> Tick {
        Tick(self.0.saturating_sub(earlier.0))
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
    use super::Tick;

    #[test]
    fn a_tick_shows_its_number_and_obeys_the_width() {
        let tick = Tick::new(1_500);
        assert_eq!(
            format!("{tick}|{tick:>6}|{tick:?}"),
            "1500|  1500|Tick(1500)"
        );
    }
}
