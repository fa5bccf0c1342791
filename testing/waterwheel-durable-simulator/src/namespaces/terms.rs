use std::time::Duration;

use fastrand::Rng;
use waterwheel_durable_core::policy::{Backoff, Policy, Rate};

use super::allowance::Limit;

/// The terms of a namespace, as the simulator knows them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Terms {
    /// The rate at which deliveries begin.
    pub rate: Option<Limit>,
    /// The rate at which timers are inserted.
    pub quota: Option<Limit>,
    /// The maximum number of concurrent deliveries.
    pub concurrency: Option<usize>,
    /// The share of the places when they are short.
    pub priority: Option<u32>,
    /// The number of days that delivered timers are kept.
    pub retention: Option<u32>,
    /// The number of unclean ends that a timer may be with its handler at.
    pub starts: Option<u32>,
    /// When timers are retried.
    pub retries: Retries,
}

/// When timers are retried.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Retries {
    /// As configured for the service.
    #[default]
    AsElsewhere,
    /// After these delays in seconds.
    Delays(Vec<u64>),
    /// After the first number of seconds, doubled up to the second, for this many attempts.
    Backoff(u64, u64, u32),
}

impl Terms {
    /// Random terms: only a priority if places are short.
    pub fn by_chance(rng: &mut Rng, is_crowded: bool) -> Terms {
        match is_crowded {
            true => Terms {
                priority: Some(rng.u32(1..8)),
                ..Terms::default()
            },
            false => Terms::some(rng),
        }
    }

    /// Random terms.
    fn some(rng: &mut Rng) -> Terms {
        let mut maybe = |limit: u32| rng.u32(0..3 * limit).checked_sub(2 * limit);
        let (concurrency, priority) = (maybe(3), maybe(4));
        let (retention, starts, retries) = (maybe(4), maybe(3), maybe(2));
        let (rate, quota) = (maybe(1), maybe(1));
        let mut limit = |burst| Limit {
            count: rng.u32(1..5),
            per_millis: [700, 3_000, 20_000][rng.usize(0..3)],
            burst: rng.u32(1..burst),
        };
        Terms {
            rate: rate.map(|_| limit(4)),
            quota: quota.map(|_| limit(9)),
            concurrency: concurrency.map(|limit| limit as usize + 1),
            priority: priority.map(|priority| priority + 1),
            retention,
            starts: starts.map(|starts| starts + 4),
            retries: match retries {
                None => Retries::AsElsewhere,
                Some(0) => Retries::Delays((0..rng.u64(0..4)).map(|step| step * 7).collect()),
                Some(_) => Retries::Backoff(2, 60, rng.u32(1..8)),
            },
        }
    }

    /// Converts the terms to the engine's type.
    pub fn policy(&self) -> Policy {
        let mut policy = Policy::default();
        if let Some(rate) = self.rate {
            policy = policy.rate(Rate::from(rate));
        }
        if let Some(quota) = self.quota {
            policy = policy.insert_rate(Rate::from(quota));
        }
        if let Some(concurrency) = self.concurrency {
            policy = policy.concurrency(concurrency);
        }
        if let Some(priority) = self.priority {
            policy = policy.priority(priority);
        }
        if let Some(retention) = self.retention {
            policy = policy.retention(retention);
        }
        if let Some(starts) = self.starts {
            policy = policy.starts(starts);
        }
        let seconds = Duration::from_secs;
        match &self.retries {
            Retries::AsElsewhere => policy,
            Retries::Delays(delays) => policy.retry_delays(delays.iter().copied().map(seconds)),
            Retries::Backoff(first, max, attempts) => {
                let backoff = Backoff::new(seconds(*first), seconds(*max));
                policy.backoff(backoff.max_attempts(*attempts))
            }
        }
    }

    /// Converts the terms to a store's setting.
    #[must_use]
    pub fn stored(&self) -> Vec<u8> {
        serde_json::to_vec(&self.policy()).unwrap_or_default()
    }

    /// The minimum and maximum delay of the retry, in microseconds, after this many earlier failures. `None` if the timer is given up.
    #[must_use]
    pub fn delays(&self, failures: u32, elsewhere: &[u64]) -> Option<(i64, i64)> {
        let exact = |retry_delays: &[u64]| {
            let micros = retry_delays.get(failures as usize)?.cast_signed() * 1_000_000;
            Some((micros, micros))
        };
        match &self.retries {
            Retries::AsElsewhere => exact(elsewhere),
            Retries::Delays(delays) => exact(delays),
            Retries::Backoff(first, max, attempts) => {
                let whole = (first << failures.min(20)).min(*max).cast_signed() * 1_000_000;
                // The engine rounds up to a millisecond.
                (failures + 1 < *attempts).then_some((whole / 2, whole + 1_000))
            }
        }
    }
}

impl From<Limit> for Rate {
    fn from(limit: Limit) -> Rate {
        let per = Duration::from_millis(limit.per_millis);
        Rate::new(limit.count, per).burst(limit.burst)
    }
}
