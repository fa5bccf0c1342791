//! The timers of one handler: which of them are loaded, are due, and are with it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::store::{Due, PageLimit, Row, RowCursor};

use super::in_flight::Purpose;
use super::loaded::Up;
use super::next::Next;
use super::planted::{self, Planted};
use super::retention::Archive;
use super::{Call, Engine, Output};

#[derive(Debug)]
pub(super) struct HandlerQueue {
    pub(super) handler: Arc<str>,
    /// The index of its namespace.
    pub(super) namespace: usize,
    pub(super) archive: Archive,
    pub(super) is_handled: bool,
    pub(super) concurrency: usize,
    pub(super) running: usize,
    /// Due, in order. Some may have left since.
    pub(super) ready: VecDeque<Up>,
    /// Of those, the accused that wait until another one was tried.
    pub(super) accused: VecDeque<Up>,
    /// The first that was overdue as it came into memory: the next turn of the wheel brings it up.
    pub(super) late: Option<Due>,
    /// How many timers of it are in memory,
    pub(super) held: usize,
    /// and how large they are.
    pub(super) bytes: usize,
    /// Those that have not come up are due in this second or before.
    pub(super) last: i64,
    /// All rows up to here are in memory, or have left.
    cursor: RowCursor,
    /// What lies before this second goes into memory as it is written: a load has been asked for all of it.
    bound: i64,
    /// The first second that has rows beyond the cursor.
    next: Next,
    /// The store was asked for it, or for rows.
    is_in_flight: bool,
    /// Meanwhile the cursor went back to this second.
    back: Option<i64>,
    /// Meanwhile a row was written to this second. The reply may not know of it.
    lowered: Option<i64>,
    /// A timer that has no handler left meanwhile. The reply may not know of it.
    has_left: bool,
    /// It was put out that its timers are due and have no handler.
    pub(super) is_reported: bool,
}

impl HandlerQueue {
    pub(super) fn new(handler: Arc<str>, namespace: usize) -> HandlerQueue {
        HandlerQueue {
            handler,
            namespace,
            archive: Archive::new(false),
            is_handled: false,
            concurrency: 1,
            running: 0,
            ready: VecDeque::new(),
            accused: VecDeque::new(),
            late: None,
            held: 0,
            bytes: 0,
            last: i64::MIN,
            cursor: RowCursor::START,
            bound: i64::MIN,
            next: Next::Unknown,
            is_in_flight: false,
            back: None,
            lowered: None,
            has_left: false,
            is_reported: false,
        }
    }

    /// The first second that has rows which are not in memory, as far as it is known.
    pub(super) fn next_second(&self) -> Option<i64> {
        match self.next {
            Next::At(second) => Some(second),
            Next::Unknown | Next::None => None,
        }
    }

    /// The cursor goes back: rows from this second on are to be loaded, again.
    fn go_back(&mut self, second: i64) {
        if self.is_in_flight {
            self.back = Some(self.back.map_or(second, |back| back.min(second)));
        }
        self.cursor = self.cursor.min(RowCursor::before(second));
        self.next.lower(second);
    }

    /// What came in while the store was asked.
    fn answered(&mut self, next: Next) {
        self.is_in_flight = false;
        self.next = next;
        if let Some(second) = self.back.take() {
            self.cursor = self.cursor.min(RowCursor::before(second));
            self.next.lower(second);
        }
        if let Some(second) = self.lowered.take() {
            self.next.lower(second);
        }
        if std::mem::take(&mut self.has_left) {
            self.next = Next::Unknown;
        }
    }

    /// A row was written to this second, which is not loaded yet.
    fn lower(&mut self, second: i64) {
        if self.is_in_flight {
            self.lowered = Some(self.lowered.map_or(second, |first| first.min(second)));
        }
        self.next.lower(second);
    }
}

impl Engine {
    /// Asks for rows whose time is near, and for when the next ones come.
    pub(super) fn load(&mut self) {
        self.waits_for_memory = false;
        let queues = 0..self.queues.len();
        self.loads_at = queues.filter_map(|queue| self.load_queue(queue)).min();
    }

    /// The store has replied what it was asked for this handler queue. With what came into memory, a turn of the wheel goes on.
    pub(super) fn go_on_loading(&mut self, queue: usize) {
        if self.has_failed || self.is_stopping {
            return;
        }
        let at = self.load_queue(queue);
        // Another handler queue may wait for the memory that was reserved for these rows: the next turn looks at all.
        let others = self.waits_for_memory.then(|| self.present());
        let at = at.into_iter().chain(others);
        self.loads_at = self.loads_at.into_iter().chain(at).min();
    }

    /// Does that for a handler queue. When to look at it again, if no call brings that up.
    fn load_queue(&mut self, index: usize) -> Option<Due> {
        self.count_check();
        let queue = &mut self.queues[index];
        if queue.is_in_flight {
            return None;
        }
        match queue.next {
            Next::None => {
                self.report(index, false);
                None
            }
            Next::Unknown => {
                queue.is_in_flight = true;
                let call = Call::FirstSecond(Arc::clone(&queue.handler), queue.cursor.second);
                self.send(call, Purpose::Second(index));
                None
            }
            Next::At(first) if !queue.is_handled => {
                let at = self.reports_at(first);
                let is_due = at <= self.present();
                self.report(index, is_due);
                (!is_due).then_some(at)
            }
            Next::At(first) => {
                let horizon = self.horizon();
                if first > horizon {
                    return Some(start(first.saturating_sub(self.config.window)));
                }
                // The end of that brings it up.
                if self.namespaces[self.queues[index].namespace].is_closed() {
                    return None;
                }
                // Else the reply to a commit brings it up, or to a load.
                let limit = self
                    .load_limit(index)
                    .or_else(|| self.evict_later_than(index, first));
                let Some(limit) = limit else {
                    self.waits_for_memory = true;
                    return None;
                };
                self.load_rows(index, horizon.saturating_add(1), limit);
                None
            }
        }
    }

    /// When a handler is missing, of a handler queue whose first row is in this second.
    fn reports_at(&self, first: i64) -> Due {
        let due = start(first.saturating_add(1)).after(self.config.grace);
        let open = Duration::from_micros(self.now.boot_micros.saturating_sub(self.begun));
        match self.config.grace.checked_sub(open) {
            Some(left) if !left.is_zero() => due.max(self.present().after(left)),
            _ => due,
        }
    }

    /// Puts out whether a handler queue without a handler has timers that are due, if that is new.
    fn report(&mut self, queue: usize, is_due: bool) {
        let queue = &mut self.queues[queue];
        if queue.is_reported == is_due {
            return;
        }
        queue.is_reported = is_due;
        let handler = Arc::clone(&queue.handler);
        self.output.push_back(match is_due {
            true => Output::Unhandled(handler),
            false => Output::NoneDue(handler),
        });
    }

    /// A timer of this name was cancelled or moved. If it was the first one without a handler, the store is asked for the next one.
    pub(super) fn left(&mut self, handler: &Arc<str>) {
        let second = self.present().second();
        let Some(&queue) = self.queue_of.get(handler) else {
            return;
        };
        let queue = &mut self.queues[queue];
        if queue.is_handled {
            return;
        }
        match queue.next {
            _ if queue.is_in_flight => queue.has_left = true,
            Next::At(first) if first <= second => queue.next = Next::Unknown,
            _ => {}
        }
    }

    fn load_rows(&mut self, index: usize, before: i64, limit: PageLimit) {
        let queue = &mut self.queues[index];
        if !planted::is(Planted::BoundAfterRead) {
            queue.bound = queue.bound.max(before);
        }
        queue.is_in_flight = true;
        let call = Call::Load {
            handler: Arc::clone(&queue.handler),
            after: queue.cursor,
            before,
            limit,
        };
        let purpose = Purpose::Rows {
            queue: index,
            before,
            limit,
        };
        self.memory_budget.reserve(limit);
        self.send(call, purpose);
    }

    /// The store has said which second is next.
    pub(super) fn second_found(&mut self, queue: usize, first: Option<i64>) {
        self.queues[queue].answered(Next::found(first));
    }

    /// The store has handed out rows.
    pub(super) fn rows_loaded(
        &mut self,
        index: usize,
        before: i64,
        limit: PageLimit,
        rows: Vec<Row>,
        number: u64,
    ) {
        self.memory_budget.release_reserved(limit);
        let horizon = self.horizon();
        // The second of the first row that was not taken, or that the load had no space for.
        let last = rows.last().map(|row| row.cursor().second);
        let mut left = last.filter(|_| !limit.exceeds(&rows));
        for row in rows {
            let cursor = row.cursor();
            if self.loaded.is_new(&row, index, Some(number))
                || planted::is(Planted::KnownTakenAgain)
            {
                // Beyond the horizon, if the clock was set back since they were asked for.
                if cursor.second > horizon || !self.fits(index) {
                    left = Some(cursor.second);
                    break;
                }
                self.hold(row, index);
            }
            self.queues[index].cursor = cursor;
        }
        let queue = &mut self.queues[index];
        queue.bound = queue.bound.max(before);
        if left.is_none() {
            queue.cursor = queue.cursor.max(RowCursor::before(before));
        }
        queue.answered(left.map_or(Next::Unknown, Next::At));
    }

    /// A row lies in this second from now on, and is not in memory.
    pub(super) fn written(&mut self, queue: usize, second: i64) {
        let queue = &mut self.queues[queue];
        if second < queue.bound {
            queue.go_back(second);
        } else {
            queue.lower(second);
        }
    }

    /// Whether a row of this second would take the memory that rows of an earlier one wait for.
    fn is_behind(&self, queue: usize, second: i64) -> bool {
        self.queues[queue].next.is_before(second) && self.load_limit(queue).is_none()
    }

    /// The last second whose timers are in memory.
    pub(super) fn horizon(&self) -> i64 {
        let second = self.present().second();
        second.saturating_add(self.config.window)
    }

    /// A row lies in its second from now on. It goes into memory, if what lies around it did.
    pub(super) fn admit(&mut self, row: &Row, queue: usize) {
        let second = row.due.second();
        if second >= self.queues[queue].bound {
            self.queues[queue].lower(second);
        } else if second <= self.horizon() && self.fits(queue) && !self.is_behind(queue, second) {
            if self.loaded.is_new(row, queue, None) {
                self.hold(row.clone(), queue);
            }
        } else if !planted::is(Planted::CursorOverUndelivered) {
            self.queues[queue].go_back(second);
        }
    }
}

/// When a second begins.
fn start(second: i64) -> Due {
    Due::from_millis(second.saturating_mul(1_000))
}
