//! When does what was delivered expire, and what is known of it?

use std::sync::Arc;

use crate::store::{Due, Op};

use super::in_flight::Purpose;
use super::next::Next;
use super::planted::{self, Planted};
use super::{Call, Engine};

/// How much expires in a commit. The store looks up each key of it, one by one.
const AT_A_TIME: usize = 1_024;

/// So long after an opening, and after the wall clock was set, nothing expires: a clock that is wrong for a while deletes nothing.
const CALM_MICROS: u64 = 600_000_000;

const DAY_MILLIS: i64 = 86_400_000;

/// How much expires at a time, and whether some does now.
#[derive(Debug)]
pub(super) struct Expiry {
    goes_on: bool,
    limit: usize,
}

impl Default for Expiry {
    fn default() -> Expiry {
        Expiry {
            goes_on: false,
            limit: AT_A_TIME,
        }
    }
}

/// What is archived of the timers of a handler queue.
#[derive(Debug)]
pub(super) struct Archive {
    /// The first day of which there is something.
    first: Next,
    is_in_flight: bool,
    /// Meanwhile something was archived on this day. The reply may not know of it.
    lowered: Option<i64>,
}

impl Archive {
    /// Of a handler that has none yet, or of one that the store has known before.
    pub(super) fn new(is_known: bool) -> Archive {
        Archive {
            first: if is_known { Next::Unknown } else { Next::None },
            is_in_flight: false,
            lowered: None,
        }
    }
}

impl Engine {
    /// Expires archived records whose retention has ended, some at a time. Returns when there is more to do, in microseconds since boot.
    pub(super) fn expire_archives(&mut self) -> Option<u64> {
        let queues = 0..self.queues.len();
        queues.filter_map(|queue| self.expire_archive(queue)).min()
    }

    /// The store has said what is archived of this handler queue.
    pub(super) fn go_on_expiring(&mut self, queue: usize) {
        if self.has_failed || self.is_stopping {
            return;
        }
        let at = self.expire_archive(queue);
        self.expires_at = self.expires_at.into_iter().chain(at).min();
        self.commit();
    }

    /// Does that for a handler queue.
    fn expire_archive(&mut self, queue: usize) -> Option<u64> {
        self.count_check();
        if planted::is(Planted::ExpiresNothing) {
            return None;
        }
        let day = match self.queues[queue].archive.first {
            Next::None => return None,
            Next::Unknown => {
                self.ask_for_archive(queue);
                return None;
            }
            Next::At(day) => day,
        };
        if self.namespaces[self.queues[queue].namespace].is_unreadable {
            // It may say that all of this stays archived. Another policy brings it up.
            return None;
        }
        let calm_at = self.calm_since.saturating_add(CALM_MICROS);
        let before = self.kept_from(queue);
        if day >= before {
            let at = day
                .saturating_add(1)
                .saturating_add(self.retention_of(queue));
            let at = Due::from_millis(at.saturating_mul(DAY_MILLIS));
            return Some(self.now.boot_at(at).max(calm_at));
        }
        if self.now.boot_micros < calm_at {
            return Some(calm_at);
        }
        if let Some(at) = self.commits.is_put_off(self.now.boot_micros) {
            return Some(at);
        }
        if !self.expiry.goes_on {
            self.expiry.goes_on = true;
            self.commits.push(Op::Expire {
                handler: Arc::clone(&self.queues[queue].handler),
                before,
                limit: self.expiry.limit,
            });
        }
        None
    }

    fn ask_for_archive(&mut self, queue: usize) {
        let archive = &mut self.queues[queue].archive;
        if !archive.is_in_flight {
            archive.is_in_flight = true;
            let call = Call::FirstArchived(Arc::clone(&self.queues[queue].handler));
            self.send(call, Purpose::Archive(queue));
        }
    }

    /// The first day that stays archived.
    fn kept_from(&self, queue: usize) -> i64 {
        match self.retention_of(queue) {
            // Nothing is, not even of today: an earlier policy has archived it. Nor of a day to come, which a clock that was ahead has left behind.
            0 => i64::MAX,
            days => self.present().day().saturating_sub(days),
        }
    }

    fn retention_of(&self, queue: usize) -> i64 {
        let namespace = &self.namespaces[self.queues[queue].namespace];
        i64::from(namespace.policy.retention.unwrap_or(0))
    }

    /// The store has said which day is the first.
    pub(super) fn archive_found(&mut self, queue: usize, first: Option<i64>) {
        let archive = &mut self.queues[queue].archive;
        archive.is_in_flight = false;
        archive.first = Next::found(first);
        if let Some(day) = archive.lowered.take() {
            archive.first.lower(day);
        }
    }

    /// Something was archived.
    pub(super) fn archived(&mut self, handler: &Arc<str>, at: Due) {
        let queue = self.queue(handler);
        let archive = &mut self.queues[queue].archive;
        if archive.is_in_flight {
            archive.lowered = Some(
                archive
                    .lowered
                    .map_or(at.day(), |first| first.min(at.day())),
            );
        }
        archive.first.lower(at.day());
    }

    /// Nothing has expired. It is decided again when the store is asked next, of fewer: a disk that is nearly full may have space for what deletes those.
    pub(super) fn expiry_refused(&mut self) {
        self.expiry.goes_on = false;
        self.expiry.limit = (self.expiry.limit / 2).max(1);
    }

    /// Something has expired.
    pub(super) fn expired(&mut self, handler: &Arc<str>, is_empty: bool) {
        self.expiry.goes_on = false;
        self.expiry.limit = (self.expiry.limit * 2).min(AT_A_TIME);
        let queue = self.queue(handler);
        if is_empty {
            self.queues[queue].archive.first = Next::Unknown;
        }
    }
}
