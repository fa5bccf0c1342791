use std::fmt;
use std::time::Duration;

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
