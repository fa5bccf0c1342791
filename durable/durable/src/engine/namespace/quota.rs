//! May so many timers be inserted now?

use std::time::Duration;

use super::super::{Answer, Engine};
use super::namespace_in;

impl Engine {
    /// Takes the inserts of a batch off the quotas of their namespaces, of all or of none: these are the names of their handlers. So no part of a batch is inserted
    /// that uses the quota up again when the batch is.
    ///
    /// # Errors
    ///
    /// [`UnknownNamespace`](Answer::UnknownNamespace), or [`Quota`](Answer::Quota) with the time after which the batch may be taken.
    pub fn charge<'a>(&mut self, handlers: impl Iterator<Item = &'a str>) -> Result<(), Answer> {
        let mut counts: Vec<(usize, u64)> = Vec::new();
        for handler in handlers {
            let at = self.known(handler)?;
            match counts.iter_mut().find(|(of, _)| *of == at) {
                Some((_, count)) => *count += 1,
                None => counts.push((at, 1)),
            }
        }
        self.take_quotas(&counts)
    }

    /// Does that for one insert.
    pub(in super::super) fn charge_one(&mut self, handler: &str) -> Result<(), Answer> {
        let at = self.known(handler)?;
        self.take_quotas(&[(at, 1)])
    }

    fn known(&self, handler: &str) -> Result<usize, Answer> {
        let at = self.namespace_of(handler);
        let known = at.filter(|at| self.namespaces[*at].is_known);
        known.ok_or_else(|| Answer::UnknownNamespace(namespace_in(handler).into()))
    }

    fn take_quotas(&mut self, counts: &[(usize, u64)]) -> Result<(), Answer> {
        let boot = self.now.boot_micros;
        let mut longest = Duration::ZERO;
        for (at, count) in counts {
            let namespace = &mut self.namespaces[*at];
            let left = namespace.quota_lets_after(*count, boot);
            if !left.is_zero() {
                namespace.counts.refused_by_quota += count;
            }
            longest = longest.max(left);
        }
        if !longest.is_zero() {
            return Err(Answer::Quota(longest));
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
