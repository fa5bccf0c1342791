//! Decides when archived records expire.

use std::sync::Arc;

use crate::store::{Due, Op};

use super::buckets::First;
use super::clocks::Now;
use super::io::Query;
use super::namespaces::{Namespace, Namespaces};
use super::planted::{self, Planted};
use super::store_link::{Purpose, StoreLink};

/// The maximum number of records that expire in a commit. The store looks up each of their keys.
const AT_A_TIME: usize = 1_024;

/// Nothing expires for this long after opening, and after the wall clock was set, so a clock that is briefly wrong deletes nothing.
const CALM_MICROS: u64 = 600_000_000;

const DAY_MILLIS: i64 = 86_400_000;

#[derive(Debug)]
pub(super) struct Retention {
    /// The archives, by index of the handler queue.
    archives: Vec<Archive>,
    /// Since when the wall clock has not jumped, in microseconds since boot.
    calm_since: u64,
    /// Whether an expiry is being written.
    is_expiring: bool,
    /// The maximum number of records in the next expiry.
    limit: usize,
    /// When more records expire, in microseconds since boot.
    expires_at: Option<u64>,
    /// The number of times a handler queue was checked.
    #[cfg(test)]
    pub(super) checks: usize,
}

/// The archive of a handler's timers.
#[derive(Debug)]
struct Archive {
    handler: Arc<str>,
    /// The index of its namespace.
    namespace: usize,
    /// The first day that has archived records.
    first: First,
}

impl Retention {
    pub(super) fn new(now: Now) -> Retention {
        Retention {
            archives: Vec::new(),
            calm_since: now.boot_micros,
            is_expiring: false,
            limit: AT_A_TIME,
            expires_at: None,
            #[cfg(test)]
            checks: 0,
        }
    }

    /// Adds a handler queue. If the handler was known before, the store may have archived some of its timers.
    pub(super) fn add_queue(&mut self, handler: &Arc<str>, namespace: usize, is_known: bool) {
        self.archives.push(Archive {
            handler: Arc::clone(handler),
            namespace,
            first: match is_known {
                true => First::unknown(),
                false => First::none(),
            },
        });
    }

    pub(super) fn clock_was_set(&mut self, now: Now) {
        self.calm_since = now.boot_micros;
    }

    /// When more records expire, in microseconds since boot.
    pub(super) fn expires_at(&self) -> Option<u64> {
        self.expires_at
    }

    /// Expires records whose retention has ended, a limited number at a time.
    pub(super) fn expire(&mut self, namespaces: &Namespaces, link: &mut StoreLink) {
        let queues = 0..self.archives.len();
        let times = queues.filter_map(|queue| self.expire_queue(queue, namespaces, link));
        self.expires_at = times.min();
    }

    /// Continues with this handler queue, after a reply from the store.
    pub(super) fn continue_expiring(
        &mut self,
        queue: usize,
        namespaces: &Namespaces,
        link: &mut StoreLink,
    ) {
        let at = self.expire_queue(queue, namespaces, link);
        self.expires_at = self.expires_at.into_iter().chain(at).min();
    }

    /// Expires records of one handler queue. Returns when there is more to do, in microseconds since boot.
    fn expire_queue(
        &mut self,
        queue: usize,
        namespaces: &Namespaces,
        link: &mut StoreLink,
    ) -> Option<u64> {
        #[cfg(test)]
        {
            self.checks += 1;
        }
        if planted::is(Planted::ExpiresNothing) {
            return None;
        }
        let archive = &mut self.archives[queue];
        if !archive.first.is_known() {
            if !archive.first.is_in_flight() {
                archive.first.ask();
                let query = Query::FirstArchived(Arc::clone(&archive.handler));
                link.read(query, Purpose::Archive(queue));
            }
            return None;
        }
        let now = link.now;
        let day = archive.first.number()?;
        let namespace = &namespaces[archive.namespace];
        if namespace.is_unreadable {
            // The policy may say that all of this stays archived. It is checked again when another one is set.
            return None;
        }
        let calm_at = self.calm_since.saturating_add(CALM_MICROS);
        let days = days_of(namespace);
        let before = match days {
            // Nothing stays archived: neither records of today, written under an earlier policy, nor records of the future, written while the clock was ahead.
            0 => i64::MAX,
            days => now.due().day().saturating_sub(days),
        };
        if day >= before {
            let at = day.saturating_add(1).saturating_add(days);
            let at = Due::from_millis(at.saturating_mul(DAY_MILLIS));
            return Some(now.boot_at(at).max(calm_at));
        }
        if now.boot_micros < calm_at {
            return Some(calm_at);
        }
        if let Some(at) = link.delayed_until() {
            return Some(at);
        }
        if !self.is_expiring {
            self.is_expiring = true;
            link.push(Op::Expire {
                handler: Arc::clone(&archive.handler),
                before,
                limit: self.limit,
            });
        }
        None
    }

    /// Takes the store's answer: the first day that has records.
    pub(super) fn found(&mut self, queue: usize, first: Option<i64>) {
        self.archives[queue].first.replied(Some(first));
    }

    /// Notes that a timer was archived.
    pub(super) fn archived(&mut self, queue: usize, at: Due) {
        self.archives[queue].first.lower(at.day());
    }

    /// Handles a refused expiry. The next one, decided anew, is smaller: a nearly full disk may have space for that.
    pub(super) fn refused(&mut self) {
        self.is_expiring = false;
        self.limit = (self.limit / 2).max(1);
    }

    /// Handles an expiry that is durable. `is_empty`: whether nothing is left to expire.
    pub(super) fn expired(&mut self, queue: usize, is_empty: bool) {
        self.is_expiring = false;
        self.limit = (self.limit * 2).min(AT_A_TIME);
        if is_empty {
            self.archives[queue].first.forget();
        }
    }
}

fn days_of(namespace: &Namespace) -> i64 {
    i64::from(namespace.policy.retention.unwrap_or(0))
}
