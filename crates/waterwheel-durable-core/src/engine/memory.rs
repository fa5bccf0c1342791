//! Memory: the rows of the next seconds, by the queues of their handlers, within a budget.
//!
//! So many timers of each handler are in memory at most, and so many bytes of all. The timers of a handler may take as many bytes as are left free. So one that hangs has half of
//! them at most, the next one a quarter, and a handler whose timers are light goes on beside both. After some twenty of them nothing would be left: so each
//! handler has a floor, which it may fill however little is free, and beyond it one row, however large. The bound is passed by that much a handler at most.
//!
//! A namespace that is paused or drained has nothing in memory but what is with its handlers: how much of it is overdue is nothing to the others.
//!
//! No timer in memory keeps out one that is due in an earlier second: the later one leaves memory, and is read again once there is room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::store::{Due, Id, PageLimit, Row, RowCursor};
use foldhash::{HashMap, HashMapExt as _, HashSet};

use super::buckets::First;
use super::clocks::Now;
use super::io::{Config, Output, Query};
use super::loaded::{Loaded, ROW_BYTES, Share, Up};
use super::namespaces::Namespaces;
use super::planted::{self, Planted};
use super::poison::Poison;
use super::store_link::{Purpose, StoreLink};

/// The memory that a handler may use however little is free: some hundred light timers, so that its places are taken while the next ones are loaded. It is less
/// where there is little memory at all.
const FLOOR_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Memory {
    config: Arc<Config>,
    /// When the engine was made, in microseconds since boot.
    begun: u64,
    pub(super) loaded: Loaded,
    pub(super) queues: Vec<HandlerQueue>,
    by_handler: HashMap<Arc<str>, usize>,
    /// The rows that are in memory,
    held: usize,
    /// their bytes,
    held_bytes: usize,
    /// and bytes reserved for loads in flight.
    reserved_bytes: usize,
    /// When a handler queue is to be checked next.
    loads_at: Option<Due>,
    /// The budget left no space for what some handler queue would load.
    waits_for_memory: bool,
    /// How many times a handler queue was checked: for what it may load, or what of it may begin.
    #[cfg(test)]
    pub(super) checks: usize,
}

/// The timers of one handler: which of them are loaded, are due, and are with it.
#[derive(Debug)]
pub(super) struct HandlerQueue {
    pub(super) handler: Arc<str>,
    /// The index of its namespace.
    pub(super) namespace: usize,
    is_handled: bool,
    pub(super) concurrency: usize,
    pub(super) running: usize,
    /// Due, in order. Some may have left since.
    pub(super) ready: VecDeque<Up>,
    /// The accused ones among them, which wait until another one was tried.
    accused: VecDeque<Up>,
    /// The first that was overdue as it came into memory: the next turn of the wheel brings it up.
    late: Option<Due>,
    /// How many timers of it are in memory,
    pub(super) held: usize,
    /// and how large they are.
    bytes: usize,
    /// Those that have not come up are due in this second or before.
    last: i64,
    /// All rows up to here are in memory, or have left.
    cursor: RowCursor,
    /// A timer that is due before this second goes into memory as it is written: a load has been requested for all of it.
    bound: i64,
    /// The first second that has rows beyond the cursor.
    first: First,
    /// Meanwhile the cursor went back to this second.
    back: Option<i64>,
    /// A timer that has no handler left meanwhile. The reply may not know of it.
    has_left: bool,
    /// It was put out that its timers are due and have no handler.
    is_reported: bool,
}

impl HandlerQueue {
    fn new(handler: Arc<str>, namespace: usize) -> HandlerQueue {
        HandlerQueue {
            handler,
            namespace,
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
            first: First::unknown(),
            back: None,
            has_left: false,
            is_reported: false,
        }
    }

    /// The cursor goes back: rows from this second on are to be loaded, again.
    fn go_back(&mut self, second: i64) {
        if self.first.is_in_flight() {
            self.back = Some(self.back.map_or(second, |back| back.min(second)));
        }
        self.cursor = self.cursor.min(RowCursor::before(second));
        self.first.lower_known(second);
    }

    /// The store has replied, with what it knew of the first second.
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

    /// A row lies in this second from now on, and is not in memory.
    fn written(&mut self, second: i64) {
        if second < self.bound {
            self.go_back(second);
        } else {
            self.first.lower(second);
        }
    }
}

/// The memory that a load may take, apart from its last row.
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

    /// A handler queue has a handler from now on.
    pub(super) fn add_handler(&mut self, queue: usize, concurrency: usize) {
        let queue = &mut self.queues[queue];
        queue.is_handled = true;
        queue.is_reported = false;
        queue.concurrency = concurrency.max(1);
    }

    pub(super) fn has_handler(&self, name: &str) -> bool {
        let queue = self.queue_of(name);
        queue.is_some_and(|queue| self.queues[queue].is_handled)
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

    /// Counts that a handler queue is checked.
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

    /// Asks for rows whose time comes soon, and for when the next ones come.
    pub(super) fn load(&mut self, namespaces: &Namespaces, link: &mut StoreLink) {
        self.waits_for_memory = false;
        let queues = 0..self.queues.len();
        let times = queues.filter_map(|queue| self.load_queue(queue, namespaces, link));
        self.loads_at = times.min();
    }

    /// The store has replied what it was asked for this handler queue. With what came into memory, a turn of the wheel goes on.
    pub(super) fn continue_loading(
        &mut self,
        queue: usize,
        namespaces: &Namespaces,
        link: &mut StoreLink,
    ) {
        let at = self.load_queue(queue, namespaces, link);
        // Another handler queue may wait for the memory that was reserved for these rows: the next turn checks all.
        let others = self.waits_for_memory.then(|| link.now.due());
        let at = at.into_iter().chain(others);
        self.loads_at = self.loads_at.into_iter().chain(at).min();
    }

    /// Does that for a handler queue. When to check it again, if no call brings that up.
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
        // The end of that brings it up.
        if namespaces[self.queues[index].namespace].is_closed() {
            return None;
        }
        // Otherwise the reply to a commit brings it up, or to a load.
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

    /// When a handler is missing, of a handler queue whose first row is in this second.
    fn reports_at(&self, first: i64, now: Now) -> Due {
        let due = start(first.saturating_add(1)).after(self.config.grace);
        let open = Duration::from_micros(now.boot_micros.saturating_sub(self.begun));
        match self.config.grace.checked_sub(open) {
            Some(left) if !left.is_zero() => due.max(now.due().after(left)),
            _ => due,
        }
    }

    /// Puts out whether a handler queue without a handler has timers that are due, if that is new.
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

    /// The store has said which second is the first one.
    pub(super) fn second_found(&mut self, queue: usize, first: Option<i64>) {
        self.queues[queue].replied(Some(first));
    }

    /// The store has handed out rows, as the reply to this request.
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
        // The second of the first row that was not taken, or that the load had no space for.
        let last = rows.last().map(|row| row.cursor().second);
        let mut left = last.filter(|_| !limit.exceeds(&rows));
        for row in rows {
            let cursor = row.cursor();
            if self.loaded.is_new(&row, index, Some(request))
                || planted::is(Planted::KnownTakenAgain)
            {
                // Beyond the horizon, if the clock was set back since they were asked for.
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

    /// A row lies in its second from now on. It goes into memory, if what lies around it did.
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

    /// A row lies in this second from now on, and is not in memory.
    pub(super) fn written(&mut self, queue: usize, second: i64) {
        self.queues[queue].written(second);
    }

    /// A timer of this handler was cancelled or moved. If it was the first one without a handler, the store is asked for the next one.
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

    /// Whether a row of this second would take the memory that rows of an earlier one wait for.
    fn is_behind(&self, queue: usize, second: i64) -> bool {
        let first = self.queues[queue].first.number();
        first.is_some_and(|first| first < second) && self.load_limit(queue).is_none()
    }

    // The budget.

    /// How much a load may bring. `None` if that is too little to be worth it: something that is in memory has to leave first.
    fn load_limit(&self, queue: usize) -> Option<PageLimit> {
        let (queue, limit) = (&self.queues[queue], self.config.max_in_memory);
        let free = self.free_bytes();
        if queue.held > limit / 4 * 3 || queue.bytes > free / 2 {
            return None;
        }
        // Half of what fits, for the rows and for what they carry each.
        let bytes = ((free - queue.bytes) / 4).min(self.config.max_bytes_in_memory / 32);
        let rows = (limit - queue.held).min(self.config.page);
        Some(PageLimit {
            rows: rows.min(bytes / ROW_BYTES).max(1),
            bytes: bytes.max(1),
        })
    }

    /// The memory that the timers of a handler may still take.
    fn free_bytes(&self) -> usize {
        let limit = self.config.max_bytes_in_memory;
        let taken = self.held_bytes.saturating_add(self.reserved_bytes);
        limit.saturating_sub(taken).max(FLOOR_BYTES.min(limit / 32))
    }

    /// Whether another timer of the handler queue may go into memory.
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
        queue.held += 1;
        queue.last = queue.last.max(share.second);
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

    /// Evicts timers that are due after this second, to load rows of it. Returns how much a load may bring then.
    fn evict_later_than(&mut self, index: usize, first: i64) -> Option<PageLimit> {
        let queue = &mut self.queues[index];
        if queue.last <= first || planted::is(Planted::LaterKeepsOutSooner) {
            return None;
        }
        queue.last = first;
        self.evict(|queue, second| queue == index && second > first);
        self.load_limit(index)
    }

    /// The clocks have moved against each other. If the wall clock was set back, what lies beyond the horizon leaves memory.
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

    /// Nothing of these handlers begins any more: what waits leaves memory.
    pub(super) fn evict_queues(&mut self, queues: &[usize]) {
        let closed: HashSet<_> = queues.iter().copied().collect();
        self.evict(|queue, _| closed.contains(&queue));
    }

    /// Timers that are not with their handlers leave memory. Their rows are read again.
    fn evict(&mut self, leaves: impl Fn(usize, i64) -> bool) {
        for share in self.loaded.evict(leaves) {
            self.release(Some(share));
            self.written(share.queue, share.second);
        }
    }

    /// A timer that left, or was noted so that no load takes it, has left. `loading` is the last request, if rows are being loaded.
    pub(super) fn retire(&mut self, id: Id, loading: Option<u64>) {
        let share = self.loaded.forget(id, loading);
        self.release(share);
    }

    /// A timer was to leave, and nothing came of it. The row is where it was, so it is read again.
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

    // What is due.

    /// Takes from the wheel what is due.
    pub(super) fn expire(&mut self, now: Now) {
        let queues = &mut self.queues;
        self.loaded
            .expire(now, |queue, up| queues[queue].ready.push_back(up));
        if !self.loaded.has_backlog() {
            queues.iter_mut().for_each(|queue| queue.late = None);
        }
    }

    /// Takes the next one out of a handler queue. It may have left.
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

    /// Whether a handler queue would begin a delivery.
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

    /// As [`is_ready`](Memory::is_ready), without clearing the queue of timers that have left.
    pub(super) fn has_ready(&self, queue: usize) -> bool {
        let queue = &self.queues[queue];
        let is_up = |up: &Up| self.loaded.waiting(up).is_some();
        queue.running < queue.concurrency && queue.ready.iter().any(is_up)
    }

    /// Clears the queues of cancelled timers, which would stay there for as long as a handler hangs or its namespace is paused.
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
    pub(super) fn oldest_overdue(&self, queue: usize, present: Due) -> Option<Due> {
        let queue = &self.queues[queue];
        let queued = || queue.ready.iter().chain(&queue.accused);
        // Under the lock of all, of some ten thousand timers: their times are compared at once, and most often the oldest has not left.
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
