use std::time::Duration;

use serde::{Deserialize, Serialize};

/// In nanoseconds: a hundred years.
const LONGEST_BURST: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// How many in a time.
///
/// It holds over any window: in a time of any length, there are no more than the rate gives for it, and the [burst](Rate::burst) beside. As the service is opened, and as a
/// rate changes, there is one at first, and no burst.
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

    /// How many may come at once after a time without any, at least one. Default: what the rate gives in a tenth of a second, and at least one.
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
        let tenth = Duration::from_millis(100).as_nanos() / u128::from(self.interval());
        self.burst
            .unwrap_or(u32::try_from(tenth).unwrap_or(u32::MAX))
            .max(1)
    }
}
