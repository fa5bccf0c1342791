//! The rows of the next few seconds, in one queue per handler, within a memory budget.
//!
//! The budget limits the number of timers per handler, and the number of bytes in total. The timers of a handler may take as many bytes as are left free. So a handler
//! that hangs takes at most half of them, the next one a quarter, and a handler with light timers continues alongside both. After about twenty, nothing would be left, so
//! each handler has a floor that it may fill however little is free, plus one row of any size. Each handler can exceed the total by at most that much.
//!
//! In a paused or drained namespace, only timers that are with their handlers stay in memory, so its backlog does not affect other namespaces.
//!
//! A timer in memory never keeps out one that is due in an earlier second: the later one is evicted, and read again once there is room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::policy::Retries;
use crate::store::{Due, Ended, Id, PageLimit, Row, RowCursor};
use foldhash::{HashMap, HashMapExt as _, HashSet};

use super::buckets::First;
use super::clocks::Now;
use super::io::{Config, Output, Query};
use super::loaded::{Loaded, ROW_BYTES, Share, Up};
use super::namespaces::Namespaces;
use super::planted::{self, Planted};
use super::poison::Poison;
use super::store_link::{Purpose, StoreLink};

/// The memory that a handler may always use: about a hundred light timers, enough to keep it busy while the next ones are loaded. It is less
/// if the total budget is small.
const FLOOR_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Memory {
    config: Arc<Config>,
    /// When the engine was made, in microseconds since boot.
    begun: u64,
    pub(super) loaded: Loaded,
    pub(super) queues: Vec<HandlerQueue>,
    by_handler: HashMap<Arc<str>, usize>,
    /// The number of rows in memory.
    held: usize,
    /// The bytes that those rows take.
    held_bytes: usize,
    /// The bytes reserved for loads in flight.
    reserved_bytes: usize,
    /// When a handler queue has to be checked next.
    loads_at: Option<Due>,
    /// Whether the budget had no room for what some handler queue would have loaded.
    waits_for_memory: bool,
    /// The number of times a handler queue was checked for timers to load or to begin.
    #[cfg(test)]
    pub(super) checks: usize,
}

/// The timers of one handler: those that are loaded, due, or being delivered.
#[derive(Debug)]
pub(super) struct HandlerQueue {
    pub(super) handler: Arc<str>,
    /// The index of its namespace.
    pub(super) namespace: usize,
    is_handled: bool,
    pub(super) concurrency: usize,
    /// When its timers are retried, if that is not as its namespace says.
    pub(super) retries: Option<Retries>,
    /// The number of its deliveries, including those in other processes.
    pub(super) running: usize,
    /// Due timers, in order. Some may have left meanwhile.
    pub(super) ready: VecDeque<Up>,
    /// The accused timers among them, which wait until another one was tried.
    accused: VecDeque<Up>,
    /// The first timer that was already overdue when it came into memory: the next turn of the wheel brings it up.
    late: Option<Due>,
    /// The number of its timers in memory.
    pub(super) held: usize,
    /// The bytes that they take.
    bytes: usize,
    /// Timers in memory that have not come up are due in this second or earlier.
    last: i64,
    /// All rows up to here are in memory or have left.
    cursor: RowCursor,
    /// A timer due before this second goes into memory as it is written, because all rows before it have been requested.
    bound: i64,
    /// The first second that has rows beyond the cursor.
    first: First,
    /// The second to which the cursor went back while a reply was in flight.
    back: Option<i64>,
    /// Whether a timer left while the handler was missing and a reply was in flight, which may not know of it.
    has_left: bool,
    /// Whether it was reported that its timers are due but the handler is missing.
    is_reported: bool,
}

impl HandlerQueue {
    fn new(handler: Arc<str>, namespace: usize) -> HandlerQueue {
        HandlerQueue {
            handler,
            namespace,
            is_handled: false,
            concurrency: 1,
            retries: None,
            running: 0,
            ready: VecDeque::new(),
            accused: VecDeque::new(),
            late: None,
            held: 0,
            bytes: 0,
            last: i64::MIN,
            cursor: RowCursor::START,
            bound: i64::MIN,
            first: First::unknown(),
            back: None,
            has_left: false,
            is_reported: false,
        }
    }

    /// Moves the cursor back, so that rows from this second on are loaded again.
    fn go_back(&mut self, second: i64) {
        if self.first.is_in_flight() {
            self.back = Some(self.back.map_or(second, |back| back.min(second)));
        }
        self.cursor = self.cursor.min(RowCursor::before(second));
        self.first.lower_known(second);
    }

    /// Takes the store's reply with the first second, if it told that.
    fn replied(&mut self, first: Option<Option<i64>>) {
        self.first.replied(first);
        if let Some(second) = self.back.take() {
            self.cursor = self.cursor.min(RowCursor::before(second));
            self.first.lower_known(second);
        }
        if std::mem::take(&mut self.has_left) {
            self.first.forget();
        }
    }

    /// Notes that a row was written to this second, and is not in memory.
    fn written(&mut self, second: i64) {
        if second < self.bound {
            self.go_back(second);
        } else {
            self.first.lower(second);
        }
    }
}

/// The maximum memory that a load may take, apart from its last row.
fn largest(limit: PageLimit) -> usize {
    limit.bytes + limit.rows * ROW_BYTES
}

/// When a second begins.
fn start(second: i64) -> Due {
    Due::from_millis(second.saturating_mul(1_000))
}

impl Memory {
    pub(super) fn new(config: Arc<Config>, now: Now) -> Memory {
        Memory {
            config,
            begun: now.boot_micros,
            loaded: Loaded::new(now),
            queues: Vec::new(),
            by_handler: HashMap::new(),
            held: 0,
            held_bytes: 0,
            reserved_bytes: 0,
            loads_at: None,
            waits_for_memory: false,
            #[cfg(test)]
            checks: 0,
        }
    }

    pub(super) fn queue_of(&self, handler: &str) -> Option<usize> {
        self.by_handler.get(handler).copied()
    }

    pub(super) fn add_queue(&mut self, handler: &Arc<str>, namespace: usize) -> usize {
        let queue = self.queues.len();
        self.queues
            .push(HandlerQueue::new(Arc::clone(handler), namespace));
        self.by_handler.insert(Arc::clone(handler), queue);
        queue
    }

    /// Adds the handler of a handler queue.
    pub(super) fn add_handler(
        &mut self,
        queue: usize,
        concurrency: usize,
        retries: Option<Retries>,
    ) {
        let queue = &mut self.queues[queue];
        queue.is_handled = true;
        queue.is_reported = false;
        queue.concurrency = concurrency.max(1);
        queue.retries = retries;
    }

    pub(super) fn has_handler(&self, name: &str) -> bool {
        let queue = self.queue_of(name);
        queue.is_some_and(|queue| self.queues[queue].is_handled)
    }

    /// Whether the end of a delivery in another process can be applied: that of a failure depends on the retries of its handler.
    pub(super) fn can_apply(&self, id: Id, ended: &Ended) -> bool {
        let queue = self.loaded.remote_queue(id);
        let is_handled = queue.is_none_or(|queue| self.queues[queue].is_handled);
        is_handled || !matches!(ended, Ended::Failed(_) | Ended::Later(..))
    }

    pub(super) fn held(&self) -> usize {
        self.held
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// When rows are to be loaded next, by the wall clock.
    pub(super) fn loads_at(&self) -> Option<Due> {
        self.loads_at
    }

    /// Counts a check of a handler queue.
    pub(super) fn count_check(&mut self) {
        #[cfg(test)]
        {
            self.checks += 1;
        }
    }

    /// The last second whose timers are in memory.
    fn horizon(&self, now: Now) -> i64 {
        now.due().second().saturating_add(self.config.window)
    }

    // Loading.

    /// Requests the rows that are due soon, and the times of the next ones.
    pub(super) fn load(&mut self, namespaces: &Namespaces, link: &mut StoreLink) {
        self.waits_for_memory = false;
        let queues = 0..self.queues.len();
        let times = queues.filter_map(|queue| self.load_queue(queue, namespaces, link));
        self.loads_at = times.min();
    }

    /// Continues with this handler queue after a reply from the store. A turn of the wheel brings up the rows that were loaded.
    pub(super) fn continue_loading(
        &mut self,
        queue: usize,
        namespaces: &Namespaces,
        link: &mut StoreLink,
    ) {
        let at = self.load_queue(queue, namespaces, link);
        // Another handler queue may be waiting for the memory reserved for these rows: the next turn checks all queues.
        let others = self.waits_for_memory.then(|| link.now.due());
        let at = at.into_iter().chain(others);
        self.loads_at = self.loads_at.into_iter().chain(at).min();
    }

    /// Loads rows for one handler queue. Returns when to check it again, if no later call will.
    fn load_queue(
        &mut self,
        index: usize,
        namespaces: &Namespaces,
        link: &mut StoreLink,
    ) -> Option<Due> {
        self.count_check();
        let queue = &mut self.queues[index];
        if queue.first.is_in_flight() {
            return None;
        }
        if !queue.first.is_known() {
            queue.first.ask();
            let query = Query::FirstSecond(Arc::clone(&queue.handler), queue.cursor.second);
            link.read(query, Purpose::Second(index));
            return None;
        }
        let now = link.now;
        let Some(first) = queue.first.number() else {
            self.report(index, false, link);
            return None;
        };
        if !queue.is_handled {
            let at = self.reports_at(first, now);
            let is_due = at <= now.due();
            self.report(index, is_due, link);
            return (!is_due).then_some(at);
        }
        let horizon = self.horizon(now);
        if first > horizon {
            return Some(start(first.saturating_sub(self.config.window)));
        }
        // It is checked again when the namespace reopens.
        if namespaces[self.queues[index].namespace].is_closed() {
            return None;
        }
        // If there is no room, the reply to a commit or a load causes the next check.
        let limit = self
            .load_limit(index)
            .or_else(|| self.evict_later_than(index, first));
        let Some(limit) = limit else {
            self.waits_for_memory = true;
            return None;
        };
        self.load_rows(index, horizon.saturating_add(1), limit, link);
        None
    }

    /// When to report that the handler of a queue is missing, if its first row is in this second.
    fn reports_at(&self, first: i64, now: Now) -> Due {
        let due = start(first.saturating_add(1)).after(self.config.grace);
        let open = Duration::from_micros(now.boot_micros.saturating_sub(self.begun));
        match self.config.grace.checked_sub(open) {
            Some(left) if !left.is_zero() => due.max(now.due().after(left)),
            _ => due,
        }
    }

    /// Reports whether a queue without a handler has due timers, if that has changed.
    fn report(&mut self, queue: usize, is_due: bool, link: &mut StoreLink) {
        let queue = &mut self.queues[queue];
        if queue.is_reported == is_due {
            return;
        }
        queue.is_reported = is_due;
        let handler = Arc::clone(&queue.handler);
        link.put_out(match is_due {
            true => Output::Unhandled(handler),
            false => Output::NoneDue(handler),
        });
    }

    fn load_rows(&mut self, index: usize, before: i64, limit: PageLimit, link: &mut StoreLink) {
        let queue = &mut self.queues[index];
        if !planted::is(Planted::BoundAfterRead) {
            queue.bound = queue.bound.max(before);
        }
        queue.first.ask();
        let query = Query::Load {
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
        self.reserved_bytes += largest(limit);
        link.read(query, purpose);
    }

    /// Takes the store's answer: the first second that has rows.
    pub(super) fn second_found(&mut self, queue: usize, first: Option<i64>) {
        self.queues[queue].replied(Some(first));
    }

    /// Takes the rows that the store returned for this request.
    pub(super) fn rows_loaded(
        &mut self,
        (index, before, limit): (usize, i64, PageLimit),
        rows: Vec<Row>,
        request: u64,
        now: Now,
        namespaces: &Namespaces,
    ) {
        self.reserved_bytes -= largest(limit);
        let horizon = self.horizon(now);
        // The second of the first row that was not taken, or that did not fit into the load.
        let last = rows.last().map(|row| row.cursor().second);
        let mut left = last.filter(|_| !limit.exceeds(&rows));
        for row in rows {
            let cursor = row.cursor();
            if self.loaded.is_new(&row, index, Some(request))
                || planted::is(Planted::KnownTakenAgain)
            {
                // The row may be beyond the horizon, if the clock was set back since the request.
                if cursor.second > horizon || !self.fits(index, namespaces) {
                    left = Some(cursor.second);
                    break;
                }
                self.hold(row, index, now);
            }
            self.queues[index].cursor = cursor;
        }
        let queue = &mut self.queues[index];
        queue.bound = queue.bound.max(before);
        if left.is_none() {
            queue.cursor = queue.cursor.max(RowCursor::before(before));
        }
        queue.replied(left.map(Some));
    }

    /// Notes that a row was written to its second. It goes into memory if the rows around it did.
    pub(super) fn admit(&mut self, row: &Row, queue: usize, now: Now, namespaces: &Namespaces) {
        let second = row.due.second();
        if second >= self.queues[queue].bound {
            self.queues[queue].first.lower(second);
        } else if second <= self.horizon(now)
            && self.fits(queue, namespaces)
            && !self.is_behind(queue, second)
        {
            if self.loaded.is_new(row, queue, None) {
                self.hold(row.clone(), queue, now);
            }
        } else if !planted::is(Planted::CursorOverUndelivered) {
            self.queues[queue].go_back(second);
        }
    }

    /// Notes that a row was written to this second, and is not in memory.
    pub(super) fn written(&mut self, queue: usize, second: i64) {
        self.queues[queue].written(second);
    }

    /// Notes that a timer of this handler was cancelled or moved. If the handler is missing and this may have been its first due timer, the store is asked for the next.
    pub(super) fn left(&mut self, handler: &str, now: Now) {
        let Some(queue) = self.queue_of(handler) else {
            return;
        };
        let queue = &mut self.queues[queue];
        if queue.is_handled {
            return;
        }
        let second = now.due().second();
        if queue.first.is_in_flight() {
            queue.has_left = true;
        } else if queue.first.number().is_some_and(|first| first <= second) {
            queue.first.forget();
        }
    }

    /// Whether a row of this second would take memory that rows of an earlier second are waiting for.
    fn is_behind(&self, queue: usize, second: i64) -> bool {
        let first = self.queues[queue].first.number();
        first.is_some_and(|first| first < second) && self.load_limit(queue).is_none()
    }

    // The budget.

    /// How much a load may bring. `None` if that is too little to be worthwhile, so something in memory has to leave first.
    fn load_limit(&self, queue: usize) -> Option<PageLimit> {
        let (queue, limit) = (&self.queues[queue], self.config.max_in_memory);
        let free = self.free_bytes();
        if queue.held > limit / 4 * 3 || queue.bytes > free / 2 {
            return None;
        }
        // Half of what fits: half of that for the rows, and half for their keys and payloads.
        let bytes = ((free - queue.bytes) / 4).min(self.config.max_bytes_in_memory / 32);
        let rows = (limit - queue.held).min(self.config.page);
        Some(PageLimit {
            rows: rows.min(bytes / ROW_BYTES).max(1),
            bytes: bytes.max(1),
        })
    }

    /// The memory that a handler's timers may still take.
    fn free_bytes(&self) -> usize {
        let limit = self.config.max_bytes_in_memory;
        let taken = self.held_bytes.saturating_add(self.reserved_bytes);
        limit.saturating_sub(taken).max(FLOOR_BYTES.min(limit / 32))
    }

    /// Whether another timer of the handler queue fits into memory.
    fn fits(&self, queue: usize, namespaces: &Namespaces) -> bool {
        let queue = &self.queues[queue];
        let is_light = queue.bytes == 0 || queue.bytes < self.free_bytes();
        let is_open = !namespaces[queue.namespace].is_closed();
        is_open && is_light && queue.held < self.config.max_in_memory
    }

    /// Takes a row into memory.
    fn hold(&mut self, row: Row, queue: usize, now: Now) {
        let late = Some(row.due).filter(|due| now.is_past(*due));
        let share = self.loaded.hold(row, queue);
        let queue = &mut self.queues[queue];
        queue.late = queue.late.into_iter().chain(late).min();
        queue.last = queue.last.max(share.second);
        self.count(share);
    }

    /// Takes a row into memory whose handler is running in another process.
    pub(super) fn hold_remote(&mut self, row: Row, queue: usize) {
        let share = self.loaded.hold_remote(row, queue);
        self.queues[queue].running += 1;
        self.count(share);
    }

    fn count(&mut self, share: Share) {
        let queue = &mut self.queues[share.queue];
        queue.held += 1;
        queue.bytes += share.bytes;
        self.held += 1;
        self.held_bytes += share.bytes;
    }

    fn release(&mut self, share: Option<Share>) {
        if let Some(Share { queue, bytes, .. }) = share {
            let queue = &mut self.queues[queue];
            queue.held -= 1;
            queue.bytes -= bytes;
            self.held -= 1;
            self.held_bytes -= bytes;
        }
    }

    /// Evicts timers that are due after this second to make room for its rows. Returns how much a load may then bring.
    fn evict_later_than(&mut self, index: usize, first: i64) -> Option<PageLimit> {
        let queue = &mut self.queues[index];
        if queue.last <= first || planted::is(Planted::LaterKeepsOutSooner) {
            return None;
        }
        queue.last = first;
        self.evict(|queue, second| queue == index && second > first);
        self.load_limit(index)
    }

    /// Files timers again, because the clocks have moved against each other. If the wall clock was set back, rows beyond the horizon are evicted.
    pub(super) fn file_again(&mut self, now: Now) {
        let horizon = self.horizon(now);
        if self.queues.iter().any(|queue| queue.last > horizon)
            && !planted::is(Planted::LaterKeepsOutSooner)
        {
            for queue in &mut self.queues {
                queue.last = queue.last.min(horizon);
            }
            self.evict(|_, second| second > horizon);
        }
        self.loaded.file_again(now);
    }

    /// Evicts the waiting timers of handlers that begin no more deliveries.
    pub(super) fn evict_queues(&mut self, queues: &[usize]) {
        let closed: HashSet<_> = queues.iter().copied().collect();
        self.evict(|queue, _| closed.contains(&queue));
    }

    /// Evicts timers that are not with their handlers. Their rows are read again later.
    fn evict(&mut self, leaves: impl Fn(usize, i64) -> bool) {
        for share in self.loaded.evict(leaves) {
            self.release(Some(share));
            self.written(share.queue, share.second);
        }
    }

    /// Forgets a timer that has left, whether it was in memory or only recorded. `loading` is the last request, if rows are being loaded.
    pub(super) fn retire(&mut self, id: Id, loading: Option<u64>) {
        let share = self.loaded.forget(id, loading);
        self.release(share);
    }

    /// Undoes the leaving of a timer. Its row is where it was, so it is read again.
    pub(super) fn restore(&mut self, id: Id) {
        let Some(leaving) = self.loaded.restore(id) else {
            return;
        };
        self.release(leaving.share);
        if let Some(share) = leaving.share {
            self.written(share.queue, share.second);
        }
        if let Some((queue, second)) = leaving.left_out
            && !planted::is(Planted::PassedOverWhenRefused)
        {
            self.written(queue, second);
        }
    }

    // The due timers.

    /// Takes the due timers from the wheel.
    pub(super) fn expire(&mut self, now: Now) {
        let queues = &mut self.queues;
        self.loaded
            .expire(now, |queue, up| queues[queue].ready.push_back(up));
        if !self.loaded.has_backlog() {
            queues.iter_mut().for_each(|queue| queue.late = None);
        }
    }

    /// Takes the next timer out of a handler queue. It may have left.
    pub(super) fn next_up(&mut self, index: usize, now: Now, poison: &Poison) -> Option<Up> {
        let queue = &mut self.queues[index];
        if !poison.is_watchful() {
            return queue.ready.pop_front();
        }
        let may_try = poison.may_try(queue.namespace, now);
        if may_try && let Some(up) = queue.accused.pop_front() {
            return Some(up);
        }
        if !may_try && planted::is(Planted::AccusedHoldAll) {
            return None;
        }
        while let Some(up) = queue.ready.pop_front() {
            let is_accused = |row| poison.is_accused(row);
            if may_try || !self.loaded.waiting(&up).is_some_and(is_accused) {
                return Some(up);
            }
            queue.accused.push_back(up);
        }
        None
    }

    /// Whether a handler queue has a timer that could begin.
    pub(super) fn is_ready(&mut self, index: usize, now: Now, poison: &Poison) -> bool {
        let (queue, loaded) = (&mut self.queues[index], &self.loaded);
        let may_try = poison.may_try(queue.namespace, now);
        for ups in [&mut queue.ready, &mut queue.accused] {
            while ups.front().is_some_and(|up| loaded.waiting(up).is_none()) {
                ups.pop_front();
            }
        }
        let is_any = !queue.ready.is_empty() || may_try && !queue.accused.is_empty();
        is_any && queue.running < queue.concurrency
    }

    /// Like [`is_ready`](Memory::is_ready), but does not remove timers that have left from the queue.
    pub(super) fn has_ready(&self, queue: usize) -> bool {
        let queue = &self.queues[queue];
        let is_up = |up: &Up| self.loaded.waiting(up).is_some();
        queue.running < queue.concurrency && queue.ready.iter().any(is_up)
    }

    /// Removes cancelled timers from the queues, which would otherwise stay there while a handler hangs or its namespace is paused.
    pub(super) fn tidy(&mut self) {
        for queue in &mut self.queues {
            for ups in [&mut queue.ready, &mut queue.accused] {
                if ups.len() > 2 * queue.held {
                    ups.retain(|up| self.loaded.waiting(up).is_some());
                }
            }
        }
    }

    /// When the first waiting overdue timer of a handler queue was due. For a timer that is not in memory, only the second is known.
    pub(super) fn oldest_overdue(&self, queue: usize, present: Due) -> Option<Due> {
        let queue = &self.queues[queue];
        let queued = || queue.ready.iter().chain(&queue.accused);
        // Runs under the global lock for perhaps ten thousand timers: their times are compared directly, and the oldest has rarely left.
        let oldest = queued().min_by_key(|up| up.due);
        let ready = match oldest {
            Some(up) if self.loaded.waiting(up).is_none() => self.oldest_waiting(queued()),
            oldest => oldest.map(|up| up.due),
        };
        let stored = queue.first.number().map(start);
        let stored = stored.filter(|due| *due <= present);
        ready.into_iter().chain(queue.late).chain(stored).min()
    }

    /// The earliest due time among queued timers, a few of which may have left.
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
}
