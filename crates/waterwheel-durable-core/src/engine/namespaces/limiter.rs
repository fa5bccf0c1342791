//! Limits a rate: decides whether one more may begin now.
//!
//! Uses the generic cell rate algorithm of [ATM networks](https://www.itu.int/rec/T-REC-I.371), a leaky bucket without a counter: it keeps the time at which
//! the bucket will be empty.

use crate::policy::Rate;

#[derive(Debug, Clone)]
pub(crate) struct Limiter {
    /// The nanoseconds between two turns.
    interval: u64,
    /// How far `empty_at` may be ahead of the present when a turn is taken.
    tolerance: u64,
    /// When the bucket is empty, in nanoseconds since boot.
    empty_at: u64,
    /// When the last turn was taken, in nanoseconds since boot.
    taken_at: Option<u64>,
    /// Whether the last turn may be given back, because it was taken at this rate.
    is_returnable: bool,
}

impl Limiter {
    /// Starts with one turn instead of a burst, because turns taken before the service was opened are not known.
    pub(crate) fn new(rate: Rate, boot_micros: u64) -> Limiter {
        let interval = rate.interval();
        let tolerance = interval.saturating_mul(u64::from(rate.at_once()) - 1);
        Limiter {
            interval,
            tolerance,
            empty_at: nanos(boot_micros).saturating_add(tolerance),
            taken_at: None,
            is_returnable: false,
        }
    }

    /// Replaces another limiter. The first turn comes when the old limiter would have allowed it, or one new interval after the last turn if that is sooner: a rate that
    /// is changed repeatedly allows no more than the fastest of the rates.
    pub(crate) fn after(before: &Limiter, rate: Rate, boot_micros: u64) -> Limiter {
        let limiter = Limiter::new(rate, boot_micros);
        let by_the_other = before.empty_at.saturating_sub(before.tolerance);
        let first = before.taken_at.map_or(by_the_other, |at| {
            by_the_other.min(at.saturating_add(limiter.interval))
        });
        let first = first.max(nanos(boot_micros));
        Limiter {
            empty_at: first.saturating_add(limiter.tolerance),
            taken_at: before.taken_at,
            ..limiter
        }
    }

    /// Starts with a full burst.
    pub(crate) fn full(rate: Rate, boot_micros: u64) -> Limiter {
        Limiter {
            empty_at: nanos(boot_micros),
            ..Limiter::new(rate, boot_micros)
        }
    }

    /// Takes this many turns.
    pub(crate) fn take(&mut self, count: u64, boot_micros: u64) {
        let now = nanos(boot_micros);
        let empty_at = self.empty_at.max(now);
        self.taken_at = Some(now);
        self.is_returnable = true;
        self.empty_at = empty_at.saturating_add(self.interval.saturating_mul(count));
    }

    /// Gives back an unused turn that was taken at this time, if none was taken since. Otherwise the turn is lost, since returning it could allow more turns within
    /// a window than the rate permits.
    pub(crate) fn give_back(&mut self, boot_micros: u64) {
        if self.is_returnable && self.taken_at == Some(nanos(boot_micros)) {
            self.empty_at = self.empty_at.saturating_sub(self.interval);
        }
    }

    /// Whether a turn is available.
    pub(crate) fn has_one(&self, boot_micros: u64) -> bool {
        self.empty_at.saturating_sub(self.tolerance) <= nanos(boot_micros)
    }

    /// When this many turns are available, in microseconds since boot. `None` if that exceeds the burst.
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

    /// Returns when each turn is taken by a caller that checks at these times.
    fn taken(rate: Rate, checks: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut limiter = Limiter::new(rate, 0);
        let mut taken = Vec::new();
        for now in checks {
            while limiter.has_one(now) {
                limiter.take(1, now);
                taken.push(now);
            }
            assert!(limiter.next(1).unwrap() > now);
        }
        taken
    }

    /// Asserts that no window of `per` milliseconds has more than `count` turns plus the burst.
    fn expect_within((count, per, burst): (u32, u64, u32), taken: &[u64]) {
        for (first, from) in taken.iter().enumerate() {
            for (more, to) in taken[first..].iter().enumerate() {
                let limit = u64::from(burst) + (to - from) * u64::from(count) / (per * 1_000);
                let count = more as u64 + 1;
                assert!(count <= limit, "{count} from {from} to {to}");
            }
        }
    }

    #[test]
    fn no_window_has_more_than_the_rate_and_the_burst() {
        let mut rng = fastrand::Rng::with_seed(7);
        for (count, per, burst) in [(100, 1_000, 1), (3, 1_000, 5), (7, 250, 40), (1, 60_000, 2)] {
            let rate = Rate::new(count, Duration::from_millis(per)).burst(burst);
            let mut now = 0;
            // Sometimes nobody checks for a long time.
            let checks: Vec<_> = std::iter::repeat_with(|| {
                now += match rng.u32(0..100) {
                    0 => rng.u64(0..20 * per * 1_000),
                    _ => rng.u64(0..per * 100),
                };
                now
            })
            .take(3_000)
            .collect();
            let taken = taken(rate, checks.into_iter());
            assert!(taken.len() > 100, "{}", taken.len());
            expect_within((count, per, burst), &taken);
        }
    }

    #[test]
    fn what_is_given_back_is_there_again_and_no_window_has_more() {
        let mut rng = fastrand::Rng::with_seed(5);
        for (count, per, burst) in [(100, 1_000, 1), (3, 1_000, 5), (7, 250, 40)] {
            let rate = Rate::new(count, Duration::from_millis(per)).burst(burst);
            let mut limiter = Limiter::new(rate, 0);
            let (mut now, mut used) = (0, Vec::new());
            for _ in 0..2_000 {
                now += rng.u64(0..per * 1_000);
                let mut taken = 0;
                while limiter.has_one(now) && rng.u32(0..8) > 0 {
                    limiter.take(1, now);
                    taken += 1;
                }
                let returned = rng.usize(0..=taken);
                let before = limiter.clone();
                for _ in 0..returned {
                    limiter.give_back(now);
                }
                for _ in 0..returned {
                    assert!(limiter.has_one(now));
                    limiter.take(1, now);
                }
                assert_eq!(limiter.empty_at, before.empty_at);
                // Now they are given back late, and others may have been taken meanwhile.
                let then = now;
                now += rng.u64(0..per * 1_000);
                used.extend(std::iter::repeat_n(then, taken - returned));
                let others = usize::from(rng.bool() && limiter.has_one(now));
                if others > 0 {
                    limiter.take(1, now);
                    used.push(now);
                }
                for _ in 0..returned {
                    limiter.give_back(then);
                }
                if others == 0 && returned > 0 {
                    assert!(limiter.has_one(now));
                }
            }
            expect_within((count, per, burst), &used);
            assert!(used.len() > 500, "{}", used.len());
        }
        // A turn that another rate has taken over cannot be given back either.
        let rate = Rate::per_second(1).burst(3);
        let mut limiter = Limiter::full(rate, 0);
        limiter.take(1, 7);
        let mut other = Limiter::after(&limiter, Rate::per_second(2).burst(1), 9);
        let next = other.next(1);
        other.give_back(7);
        assert_eq!(other.next(1), next);
    }

    #[test]
    fn it_is_as_fast_as_the_rate_where_it_is_looked_at_often() {
        // Checks each millisecond, for 100 seconds.
        let checks = || (0..100_000).map(|milli| milli * 1_000);
        for count in [1, 100, 777, 5_000] {
            let count_taken = taken(Rate::per_second(count), checks()).len() as f64;
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
    fn changes_of_a_rate_grant_none() {
        let rates = [59, 60, 30].map(|count| Rate::per_minute(count).burst(1));
        let fast = Rate::per_second(10).burst(5);
        let mut limiter = Limiter::new(rates[0], 0);
        let mut taken = Vec::new();
        for milli in 0..10_000_u64 {
            let now = milli * 1_000;
            limiter = Limiter::after(&limiter, rates[milli as usize % 3], now);
            while limiter.has_one(now) {
                limiter.take(1, now);
                taken.push(milli);
            }
        }
        // No more than the fastest rate allows.
        assert_eq!(taken.len(), 10);
        assert!(taken.windows(2).all(|it| it[1] - it[0] >= 1_000));
        // A faster rate does not wait for the slot of a slow one, and starts without a burst, even after enough time for one.
        let limiter = Limiter::new(Rate::new(1, Duration::from_secs(3_600)).burst(3), 0);
        for (now, first) in [(5, 5), (7_200_000_000_000, 7_200_000_000_000)] {
            assert_eq!(Limiter::after(&limiter, fast, now).next(1), Some(first));
        }
        let mut slow = limiter;
        slow.take(1, 0);
        let mut fast = Limiter::after(&slow, fast, 5);
        assert_eq!(fast.next(1), Some(100_000));
        fast.take(1, 100_005);
        assert_eq!(fast.next(1), Some(200_000));
        // A slower replacement begins no later than its predecessor would have.
        let slower = Limiter::after(&fast, rates[0], 100_006);
        assert_eq!(slower.next(1), Some(200_000));
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
            // Takes them one by one, at that time and slightly earlier.
            for (time, taken) in [(at.max(now), count), (at.saturating_sub(1).max(now), count)] {
                let mut others = limiter.clone();
                let mut lets = 0;
                while lets < taken && others.has_one(time) {
                    others.take(1, time);
                    lets += 1;
                }
                assert_eq!(lets == taken, time >= at, "{count} at {time} of {at}");
            }
            now = at.max(now) + rng.u64(0..2_000_000);
            limiter.take(count, now);
        }
    }
}
