//! What becomes of a timer that is due?

use std::sync::Arc;

use crate::store::{Due, Id, Op, Row};

use super::loaded::Up;
use super::planted::{self, Planted};
use super::{Delivery, Ended, Engine};

impl Engine {
    /// Takes from the wheel what is due.
    pub(super) fn expire(&mut self) {
        let queues = &mut self.queues;
        self.loaded
            .expire(self.now, |queue, up| queues[queue].ready.push_back(up));
        if !self.loaded.has_backlog() {
            queues.iter_mut().for_each(|queue| queue.late = None);
        }
    }

    /// Begins the next delivery of a handler queue, if it has a place and something is ready.
    pub(super) fn begin_one(&mut self, index: usize) -> bool {
        self.count_check();
        let namespace = self.queues[index].namespace;
        if self.queues[index].running >= self.queues[index].concurrency {
            return false;
        }
        while let Some(up) = self.next_up(index) {
            let Some(row) = self.loaded.run(&up, self.now) else {
                continue;
            };
            if self.is_poison(&row, namespace) {
                self.give_up(&row);
                continue;
            }
            self.queues[index].running += 1;
            self.namespaces[namespace].running += 1;
            self.start(row);
            return true;
        }
        false
    }

    /// Takes the next one out of a handler queue. It may have left.
    fn next_up(&mut self, index: usize) -> Option<Up> {
        if !self.poison.is_watchful() {
            return self.queues[index].ready.pop_front();
        }
        let may_try = self.may_try(self.queues[index].namespace);
        if may_try && let Some(up) = self.queues[index].accused.pop_front() {
            return Some(up);
        }
        if !may_try && planted::is(Planted::AccusedHoldAll) {
            return None;
        }
        while let Some(up) = self.queues[index].ready.pop_front() {
            let is_accused = |row| self.is_accused(row);
            if may_try || !self.loaded.waiting(&up).is_some_and(is_accused) {
                return Some(up);
            }
            self.queues[index].accused.push_back(up);
        }
        None
    }

    /// Whether a handler queue would begin a delivery.
    pub(super) fn is_ready(&mut self, index: usize) -> bool {
        let may_try = self.may_try(self.queues[index].namespace);
        let (queue, loaded) = (&mut self.queues[index], &self.loaded);
        for ups in [&mut queue.ready, &mut queue.accused] {
            while ups.front().is_some_and(|up| loaded.waiting(up).is_none()) {
                ups.pop_front();
            }
        }
        let is_any = !queue.ready.is_empty() || may_try && !queue.accused.is_empty();
        is_any && queue.running < queue.concurrency
    }

    /// The same, of what is not cleared of what has left.
    pub(super) fn has_ready(&self, queue: usize) -> bool {
        let queue = &self.queues[queue];
        let is_up = |up: &Up| self.loaded.waiting(up).is_some();
        queue.running < queue.concurrency && queue.ready.iter().any(is_up)
    }

    /// What was cancelled would stay in the queues for as long as a handler hangs, or its namespace is paused.
    pub(super) fn tidy(&mut self) {
        for queue in &mut self.queues {
            for ups in [&mut queue.ready, &mut queue.accused] {
                if ups.len() > 2 * queue.held {
                    ups.retain(|up| self.loaded.waiting(up).is_some());
                }
            }
        }
    }

    /// When the first timer of a handler queue was due that is overdue and waits: of a timer that is not in memory, only the second is known.
    pub(super) fn oldest_of(&self, queue: usize, present: Due) -> Option<Due> {
        let queue = &self.queues[queue];
        let queued = || queue.ready.iter().chain(&queue.accused);
        // Under the lock of all, of some ten thousand timers: their times are compared at once, and most often the oldest has not left.
        let oldest = queued().min_by_key(|up| up.due);
        let ready = match oldest {
            Some(up) if self.loaded.waiting(up).is_none() => self.oldest_waiting(queued()),
            oldest => oldest.map(|up| up.due),
        };
        let stored = queue
            .next_second()
            .map(|second| Due::from_millis(second.saturating_mul(1_000)));
        let stored = stored.filter(|due| *due <= present);
        ready.into_iter().chain(queue.late).chain(stored).min()
    }

    /// The same of some of which a few may have left.
    fn oldest_waiting<'a>(&self, queued: impl Iterator<Item = &'a Up>) -> Option<Due> {
        let mut oldest: Option<Due> = None;
        // They are in the order in which they came up. Few are older than all before them, and only those are looked up.
        for up in queued {
            if oldest.is_none_or(|oldest| up.due < oldest) && self.loaded.waiting(up).is_some() {
                oldest = Some(up.due);
            }
        }
        oldest
    }

    /// The handler of a delivery was called at this time of the wall clock. It is known once that has ended.
    pub fn called(&mut self, handler: &str, due: Due, wall_micros: i64) {
        let due = due.as_millis().saturating_mul(1_000);
        let late = wall_micros.saturating_sub(due).max(0);
        if let Some(at) = self.namespace_of(handler) {
            self.namespaces[at].lateness.count(late.unsigned_abs());
        }
    }

    /// The wall clock was set back while a delivery was on its way, and its handler was not called. The timer waits for its time again: no attempt is used up,
    /// nothing is written, and its place is free.
    pub fn withdraw(&mut self, delivery: &Delivery) {
        if let Some(queue) = self.give_back(delivery.row.id) {
            let namespace = self.queues[queue].namespace;
            self.namespaces[namespace].was_not_called(delivery.at);
            self.go_on();
        }
    }

    /// A delivery has ended. Returns whether it has failed, and the timer is tried again.
    pub fn ended(&mut self, id: Id, ended: Ended) -> bool {
        let Some((row, queue)) = self.loaded.end(id) else {
            return false;
        };
        self.place_is_free(queue, &row);
        if self.has_failed {
            return false;
        }
        let namespace = self.queues[queue].namespace;
        if planted::is(Planted::NeverSettled) && ended == Ended::Well && id.get().is_multiple_of(16)
        {
            self.retire(id);
            self.deliver_after(queue);
            return false;
        }
        let op = match ended {
            Ended::Well => self.settling(row, namespace),
            Ended::Dead(error) => self.burial(row, error),
            Ended::Failed(error) => self.retrial(row, error, None, namespace),
            Ended::Later(error, delay) => self.retrial(row, error, Some(delay), namespace),
        };
        let is_retried = matches!(op, Op::Retry(..));
        let comes_back = match planted::is(Planted::GivenUpComesBack) {
            true => !matches!(op, Op::Settle(_) | Op::Archive(..)),
            false => is_retried,
        };
        if comes_back {
            self.loaded.comes_back(id);
        }
        if planted::is(Planted::ForgottenBeforeSettled) && matches!(op, Op::Settle(_)) {
            self.retire(id);
        }
        self.commits.push(op);
        self.deliver_after(queue);
        self.commit();
        is_retried
    }

    pub(super) fn burial(&self, row: Row, error: Arc<str>) -> Op {
        let at = self.present();
        Op::Bury { row, at, error }
    }
}
