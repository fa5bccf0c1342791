//! Has its time come, at this rate?
//!
//! The generic cell rate algorithm of [ATM networks](https://www.itu.int/rec/T-REC-I.371), which is a leaky bucket without a count: it keeps the time at which
//! the bucket is empty again.

use crate::policy::Rate;

#[derive(Debug, Clone)]
pub(crate) struct Limiter {
    /// Nanoseconds from one to the next.
    interval: u64,
    /// How far `empty_at` may be ahead of the present when one is taken.
    tolerance: u64,
    /// In nanoseconds since boot.
    empty_at: u64,
}

impl Limiter {
    /// Begins with one, and not with a burst: what was taken before the service was opened, or the rate was changed, is not known.
    pub(crate) fn new(rate: Rate, boot_micros: u64) -> Limiter {
        let interval = rate.interval();
        let tolerance = interval.saturating_mul(u64::from(rate.at_once()) - 1);
        Limiter {
            interval,
            tolerance,
            empty_at: nanos(boot_micros).saturating_add(tolerance),
        }
    }

    /// Begins with a burst.
    pub(crate) fn full(rate: Rate, boot_micros: u64) -> Limiter {
        Limiter {
            empty_at: nanos(boot_micros),
            ..Limiter::new(rate, boot_micros)
        }
    }

    /// Takes so many.
    pub(crate) fn take(&mut self, count: u64, boot_micros: u64) {
        let empty_at = self.empty_at.max(nanos(boot_micros));
        self.empty_at = empty_at.saturating_add(self.interval.saturating_mul(count));
    }

    /// Whether there is one.
    pub(crate) fn has_one(&self, boot_micros: u64) -> bool {
        self.empty_at.saturating_sub(self.tolerance) <= nanos(boot_micros)
    }

    /// When there are so many, in microseconds since boot. `None` if there are never so many at once.
    pub(crate) fn next(&self, count: u64) -> Option<u64> {
        let others = self.interval.saturating_mul(count.saturating_sub(1));
        let tolerance = self.tolerance.checked_sub(others)?;
        Some(self.empty_at.saturating_sub(tolerance).div_ceil(1_000))
    }
}

fn nanos(micros: u64) -> u64 {
    micros.saturating_mul(1_000)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// When each of them is taken, by one who looks at these times.
    fn taken(rate: Rate, looks: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut limiter = Limiter::new(rate, 0);
        let mut taken = Vec::new();
        for now in looks {
            while limiter.has_one(now) {
                limiter.take(1, now);
                taken.push(now);
            }
            assert!(limiter.next(1).unwrap() > now);
        }
        taken
    }

    #[test]
    fn no_window_has_more_than_the_rate_and_the_burst() {
        let mut rng = fastrand::Rng::with_seed(7);
        for (count, per, burst) in [(100, 1_000, 1), (3, 1_000, 5), (7, 250, 40), (1, 60_000, 2)] {
            let rate = Rate::new(count, Duration::from_millis(per)).burst(burst);
            let mut now = 0;
            // Sometimes nothing is looked at for long.
            let looks: Vec<_> = std::iter::repeat_with(|| {
                now += match rng.u32(0..100) {
                    0 => rng.u64(0..20 * per * 1_000),
                    _ => rng.u64(0..per * 100),
                };
                now
            })
            .take(3_000)
            .collect();
            let taken = taken(rate, looks.into_iter());
            assert!(taken.len() > 100, "{}", taken.len());
            for (first, from) in taken.iter().enumerate() {
                for (more, to) in taken[first..].iter().enumerate() {
                    let most = u64::from(burst) + (to - from) * u64::from(count) / (per * 1_000);
                    assert!(
                        (more as u64) < most,
                        "{rate:?}: {} from {from} to {to}",
                        more + 1
                    );
                }
            }
        }
    }

    #[test]
    fn it_is_as_fast_as_the_rate_where_it_is_looked_at_often() {
        // Each millisecond, for 100 seconds.
        let looks = || (0..100_000).map(|milli| milli * 1_000);
        for count in [1, 100, 777, 5_000] {
            let count_taken = taken(Rate::per_second(count), looks()).len() as f64;
            let expected = f64::from(count) * 100.0;
            assert!(
                (count_taken - expected).abs() <= expected * 0.001 + 1.0,
                "{count_taken} of {expected}"
            );
        }
    }

    #[test]
    fn it_begins_with_one() {
        let rate = Rate::new(1, Duration::from_secs(3_600)).burst(50);
        assert_eq!(taken(rate, [0, 1, 3_599_999_999].into_iter()), [0]);
        assert_eq!(Limiter::new(rate, 5).next(1), Some(5));
    }

    #[test]
    fn many_at_once_are_there_when_each_of_them_is() {
        let rate = Rate::new(3, Duration::from_secs(1)).burst(20);
        let mut rng = fastrand::Rng::with_seed(3);
        let mut limiter = Limiter::new(rate, 0);
        let mut now = 0;
        for _ in 0..3_000 {
            let count = rng.u64(1..=21);
            let Some(at) = limiter.next(count) else {
                assert_eq!(count, 21);
                continue;
            };
            // One by one, at that time and a little before.
            for (look, taken) in [(at.max(now), count), (at.saturating_sub(1).max(now), count)] {
                let mut others = limiter.clone();
                let mut lets = 0;
                while lets < taken && others.has_one(look) {
                    others.take(1, look);
                    lets += 1;
                }
                assert_eq!(lets == taken, look >= at, "{count} at {look} of {at}");
            }
            now = at.max(now) + rng.u64(0..2_000_000);
            limiter.take(count, now);
        }
    }
}
