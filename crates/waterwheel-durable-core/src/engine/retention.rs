//! When does what was archived expire, and what is known of it?

use std::sync::Arc;

use crate::store::{Due, Op};

use super::buckets::First;
use super::clocks::Now;
use super::io::Query;
use super::namespaces::{Namespace, Namespaces};
use super::planted::{self, Planted};
use super::store_link::{Purpose, StoreLink};

/// How much expires in a commit. The store looks up each key of it, one by one.
const AT_A_TIME: usize = 1_024;

/// So long after an opening, and after the wall clock was set, nothing expires: a clock that is wrong for a while deletes nothing.
const CALM_MICROS: u64 = 600_000_000;

const DAY_MILLIS: i64 = 86_400_000;

#[derive(Debug)]
pub(super) struct Retention {
    /// By the handler queues.
    archives: Vec<Archive>,
    /// Since then, in microseconds since boot, the wall clock has not jumped.
    calm_since: u64,
    /// Some expires now,
    is_expiring: bool,
    /// and so much at a time.
    limit: usize,
    /// When more expires, in microseconds since boot.
    expires_at: Option<u64>,
    /// How many times a handler queue was checked.
    #[cfg(test)]
    pub(super) checks: usize,
}

/// The archive of a handler's timers.
#[derive(Debug)]
struct Archive {
    handler: Arc<str>,
    /// The index of its namespace.
    namespace: usize,
    /// The first day of which there is something.
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

    /// There is another handler queue. The store may have something of its handler if that was known before.
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

    /// When more expires, in microseconds since boot.
    pub(super) fn expires_at(&self) -> Option<u64> {
        self.expires_at
    }

    /// Expires records whose retention has ended, some at a time.
    pub(super) fn expire(&mut self, namespaces: &Namespaces, link: &mut StoreLink) {
        let queues = 0..self.archives.len();
        let times = queues.filter_map(|queue| self.expire_queue(queue, namespaces, link));
        self.expires_at = times.min();
    }

    /// The store has said what is archived of this handler queue.
    pub(super) fn continue_expiring(
        &mut self,
        queue: usize,
        namespaces: &Namespaces,
        link: &mut StoreLink,
    ) {
        let at = self.expire_queue(queue, namespaces, link);
        self.expires_at = self.expires_at.into_iter().chain(at).min();
    }

    /// Does that for a handler queue. Returns when there is more to do, in microseconds since boot.
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
            // It may say that all of this stays archived. Another policy brings it up.
            return None;
        }
        let calm_at = self.calm_since.saturating_add(CALM_MICROS);
        let days = days_of(namespace);
        let before = match days {
            // Nothing stays archived, not even of today: an earlier policy has archived it. Nor of a day to come, which a clock that was ahead has left behind.
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

    /// The store has said which day is the first.
    pub(super) fn found(&mut self, queue: usize, first: Option<i64>) {
        self.archives[queue].first.replied(Some(first));
    }

    /// Something was archived.
    pub(super) fn archived(&mut self, queue: usize, at: Due) {
        self.archives[queue].first.lower(at.day());
    }

    /// Nothing has expired. It is decided again when the store is asked next, of fewer: a disk that is nearly full may have space for what deletes those.
    pub(super) fn refused(&mut self) {
        self.is_expiring = false;
        self.limit = (self.limit / 2).max(1);
    }

    /// Something has expired, or all that was to.
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
