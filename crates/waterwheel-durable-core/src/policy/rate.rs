use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A hundred years, in nanoseconds.
const LONGEST_BURST: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// A rate: a number of deliveries or inserts per unit of time.
///
/// A rate holds over any window: in a window of any length, there are no more than the rate allows for that length,
/// plus the [burst](Rate::burst). A rate of deliveries starts with a single delivery when the service is opened, since
/// it does not know how much the other side has just received. After a change, the new rate continues where the
/// previous one would have, or one interval of its own after the last delivery if that is sooner, and without a burst.
/// A quota of inserts always starts with its full burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[must_use]
pub struct Rate {
    pub(super) count: u32,
    pub(super) per: Duration,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) burst: Option<u32>,
}

impl Rate {
    /// Creates a rate of `count` per `per`, evenly spaced. `per` is from a microsecond to a year.
    pub const fn new(count: u32, per: Duration) -> Rate {
        Rate {
            count,
            per,
            burst: None,
        }
    }

    /// Creates a rate of `count` per second.
    pub const fn per_second(count: u32) -> Rate {
        Rate::new(count, Duration::from_secs(1))
    }

    /// Creates a rate of `count` per minute.
    pub const fn per_minute(count: u32) -> Rate {
        Rate::new(count, Duration::from_secs(60))
    }

    /// Sets how many may come at once after an idle period; at least one. Default: what the rate allows in a second,
    /// and at least one. A batch of inserts that is larger than the burst is never accepted.
    ///
    /// A service checks its limits about once a millisecond, so with a burst of 1 a high rate is not reached.
    pub const fn burst(mut self, burst: u32) -> Rate {
        self.burst = Some(burst);
        self
    }

    /// The reason why the rate is invalid, if it is.
    pub(crate) fn wrong(self) -> Option<&'static str> {
        match self {
            Rate { count: 0, .. } => {
                Some("it must allow at least 1 per period; to deliver nothing, pause the namespace")
            }
            Rate { burst: Some(0), .. } => Some("its burst must be at least 1"),
            Rate { per, .. } if per < Duration::from_micros(1) => {
                Some("its period must be at least a microsecond")
            }
            Rate { per, .. } if per > Duration::from_secs(366 * 86_400 - 1) => {
                Some("its period must be at most a year")
            }
            rate if rate
                .interval()
                .checked_mul(u64::from(rate.at_once()))
                .is_none_or(|it| it > LONGEST_BURST) =>
            {
                Some("its burst must be at most what it allows in a hundred years")
            }
            _ => None,
        }
    }

    /// The nanoseconds between two turns, rounded up so that the rate is never exceeded.
    pub(crate) fn interval(self) -> u64 {
        let nanos = self.per.as_nanos().div_ceil(u128::from(self.count.max(1)));
        u64::try_from(nanos).unwrap_or(u64::MAX).max(1)
    }

    /// How many turns may come at once.
    pub(crate) fn at_once(self) -> u32 {
        let of_a_second = 1_000_000_000 / self.interval();
        self.burst
            .unwrap_or(u32::try_from(of_a_second).unwrap_or(u32::MAX))
            .max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_what_a_rate_gives_in_a_second() {
        for (rate, expected) in [
            (Rate::per_second(5_000), 5_000),
            (Rate::per_second(1), 1),
            (Rate::per_minute(120), 2),
            (Rate::per_minute(59), 1),
            (Rate::new(1, Duration::from_secs(86_400)), 1),
            (Rate::per_second(5_000).burst(7), 7),
        ] {
            assert_eq!((rate.at_once(), rate.wrong()), (expected, None), "{rate:?}");
        }
    }
}
