//! May so many timers be inserted now?

use std::sync::Arc;
use std::time::Duration;

use foldhash::{HashMap, HashMapExt as _};

use super::super::{Answer, Engine, OverQuota};
use super::namespace_in;

/// How many timers of a batch are of which namespace, in the order in which these come up: the names are those of their handlers. A batch may be large, so that is
/// reckoned without an engine.
#[must_use]
pub fn by_namespace<'a>(handlers: impl Iterator<Item = &'a str>) -> Vec<(&'a str, u64)> {
    let mut counts: Vec<(&str, u64)> = Vec::new();
    let mut at: HashMap<&str, usize> = HashMap::new();
    for handler in handlers {
        let name = namespace_in(handler);
        let of = *at.entry(name).or_insert(counts.len());
        match counts.get_mut(of) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts
}

impl Engine {
    /// Takes the inserts of a batch off the quotas of their namespaces, of all or of none: so many of each by its name. So no part of a batch is inserted that
    /// uses the quota up again when the batch is.
    ///
    /// # Errors
    ///
    /// [`UnknownNamespace`](Answer::UnknownNamespace), or [`Quota`](Answer::Quota).
    pub fn charge(&mut self, counts: &[(&str, u64)]) -> Result<(), Answer> {
        let known = |(name, count): &(&str, u64)| Ok((self.known(name)?, *count));
        let counts = counts.iter().map(known);
        let counts: Vec<_> = counts.collect::<Result<_, Answer>>()?;
        self.take_quotas(&counts)
    }

    /// Does that for one insert.
    pub(in super::super) fn charge_one(&mut self, handler: &str) -> Result<(), Answer> {
        let at = self.known(namespace_in(handler))?;
        self.take_quotas(&[(at, 1)])
    }

    fn known(&self, name: &str) -> Result<usize, Answer> {
        let at = self.index_of(name);
        let known = at.filter(|at| self.namespaces[*at].is_known);
        known.ok_or_else(|| Answer::UnknownNamespace(name.into()))
    }

    fn take_quotas(&mut self, counts: &[(usize, u64)]) -> Result<(), Answer> {
        let boot = self.now.boot_micros;
        let mut longest = Duration::ZERO;
        let mut over = None;
        for (at, count) in counts {
            let namespace = &mut self.namespaces[*at];
            let left = namespace.quota_lets_after(*count, boot);
            if !left.is_zero() {
                namespace.counts.refused_by_quota += count;
            }
            if left > longest {
                longest = left;
                over = Some(OverQuota {
                    namespace: Arc::clone(&namespace.name),
                    retry_after: (left < Duration::MAX).then_some(left),
                });
            }
        }
        if let Some(over) = over {
            return Err(Answer::Quota(over));
        }
        for (at, count) in counts {
            if let Some(limiter) = &mut self.namespaces[*at].insert_rate {
                limiter.take(*count, boot);
            }
        }
        Ok(())
    }
}

impl super::Namespace {
    /// How long it takes until so many timers may be inserted at once. For ever, if that is more than a burst.
    fn quota_lets_after(&self, count: u64, boot_micros: u64) -> Duration {
        let Some(limiter) = &self.insert_rate else {
            return Duration::ZERO;
        };
        let at = limiter.next(count);
        at.map_or(Duration::MAX, |at| {
            Duration::from_micros(at.saturating_sub(boot_micros))
        })
    }
}
