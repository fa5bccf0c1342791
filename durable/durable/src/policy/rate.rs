use std::time::Duration;

use serde::{Deserialize, Serialize};

/// In nanoseconds: a hundred years.
const LONGEST_BURST: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// How many in a time.
///
/// It holds over any window: in a time of any length, there are no more than the rate gives for it, and the [burst](Rate::burst) beside. As the service is opened, and as the
/// rate changes, a rate of deliveries begins with one, since it is not known what the other side has had; a quota of inserts begins with its burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct Rate {
    count: u32,
    per: Duration,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u32>,
}

impl Rate {
    /// So many in this time, evenly. A time from a microsecond to a year.
    pub const fn new(count: u32, per: Duration) -> Rate {
        Rate {
            count,
            per,
            burst: None,
        }
    }

    /// So many a second.
    pub const fn per_second(count: u32) -> Rate {
        Rate::new(count, Duration::from_secs(1))
    }

    /// So many a minute.
    pub const fn per_minute(count: u32) -> Rate {
        Rate::new(count, Duration::from_secs(60))
    }

    /// How many may come at once after a time without any, at least one. Default: what the rate gives in a second, and at least one. A batch of inserts that is larger
    /// than the burst is never taken.
    ///
    /// A service looks at its limits every millisecond or so. A burst of 1 at a high rate is therefore slower than the rate.
    pub const fn burst(mut self, burst: u32) -> Rate {
        self.burst = Some(burst);
        self
    }

    /// Why it makes no sense, if so.
    pub(crate) fn wrong(self) -> Option<&'static str> {
        match self {
            Rate { count: 0, .. } => {
                Some("at least 1 in its time; to deliver nothing, pause the namespace")
            }
            Rate { burst: Some(0), .. } => Some("a burst is at least 1"),
            Rate { per, .. } if per < Duration::from_micros(1) => {
                Some("its time is at least a microsecond")
            }
            Rate { per, .. } if per > Duration::from_secs(366 * 86_400 - 1) => {
                Some("its time is at most a year")
            }
            rate if rate
                .interval()
                .checked_mul(u64::from(rate.at_once()))
                .is_none_or(|it| it > LONGEST_BURST) =>
            {
                Some("its burst is at most what it gives in a hundred years")
            }
            _ => None,
        }
    }

    /// Nanoseconds from one to the next, rounded up: so there are never more.
    pub(crate) fn interval(self) -> u64 {
        let nanos = self.per.as_nanos().div_ceil(u128::from(self.count.max(1)));
        u64::try_from(nanos).unwrap_or(u64::MAX).max(1)
    }

    /// How many may come at once.
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
