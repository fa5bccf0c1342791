//! The engine decides which timers are loaded, delivered and settled, and when. It has no clock, thread or file: it is handed the time and the store's replies, and
//! returns what has to be done. So a simulator can run years of it, with every fault, in a millisecond.
//!
//! [`Engine`] is the contract and coordinates its parts. A part owns its data and knows only the parts below it, which are passed to its methods. The link holds
//! the time that the engine was last told, so a method that is passed the link needs no other time.
//!
//! | part | question |
//! |---|---|
//! | `memory` | which rows are in memory, for which handler, and within which budget? |
//! | `loaded` | what does each of them wait for, and which have left while rows were being loaded? |
//! | `buckets` | which bucket cascades next? |
//! | `namespaces/` | what is there of one namespace, and whose delivery begins next? |
//! | `poison` | which timers may be what ends the process, again and again? |
//! | `retention` | when does what was archived expire? |
//! | `calendar/` | which occurrence of a calendar becomes a timer, and when? |
//! | `deferred` | which cancels and reschedules wait for a commit that moves their timer? |
//! | `hand_over` | which handlers are running after another process has taken over, and how do their deliveries end? |
//! | `ids` | which id does the next timer get, and when is another epoch needed? |
//! | `store_link` | what time is it, what is put out, what is written next, who waits for it, and was a reply lost? |
//! | `clocks` | was the wall clock set, and which tick of the wheel is a time of it? |
//! | `io` | which values go in and come out? |
//! | `view` | what can be read of it? |
//! | `planted` | which fault is planted, to test the simulator? |

mod buckets;
pub mod calendar;
mod clocks;
mod deferred;
mod hand_over;
mod ids;
mod io;
mod loaded;
mod memory;
mod namespaces;
pub mod planted;
mod poison;
mod retention;
mod store_link;
#[cfg(test)]
mod tests;
mod view;

use std::sync::Arc;

use crate::policy::{Policy, Retries};
use crate::store::{
    Bucket, Command, Due, Ended, Handle, Id, Level, Op, Outcome, PolicyChange, Row, Setting,
    StoreError,
};

use buckets::Buckets;
use calendar::Calendars;
pub use clocks::Now;
use clocks::{Clocks, Moved};
use deferred::{Change, Deferred};
use hand_over::{End, HandOver};
use ids::Ids;
pub use io::{Answer, Config, Delivery, Output, OverQuota, Query, Reply, Stats, Token, new_row};
use loaded::Delivered;
pub use loaded::ROW_BYTES;
use memory::Memory;
use namespaces::Namespaces;
pub use namespaces::{BOUNDS, Counts, DEFAULT, Histogram};
use namespaces::{Deliveries, burial, pause_setting, policy_setting, snoozing};
pub use namespaces::{Namespace, by_namespace, namespace_in};
use planted::Planted;
use poison::Poison;
use retention::Retention;
use store_link::{Callers, Purpose, StoreLink};

/// Decides what becomes of durable timers, for a store, for handlers and for callers that others run.
///
/// # Inputs
///
/// Each `handle_*` method tells the engine that something has happened, or asks something of it. None of them blocks.
///
/// - **Time**: [`handle_time`](Engine::handle_time), no later than [`poll_timeout`](Engine::poll_timeout) says. All other inputs are handled at the time
///   that the engine was last told.
/// - **The store**: [`handle_committed`](Engine::handle_committed) after each [`Output::Commit`], [`handle_reply`](Engine::handle_reply) after each
///   [`Output::Read`], and [`handle_failure`](Engine::handle_failure) if the store fails otherwise.
/// - **Requests**, from callers and as [commands](Engine::handle_command) from other processes. Each has a [`Token`], and gets one [`Answer`] with it.
/// - **Handlers**: [`add_handler`](Engine::add_handler), and the fate of each [`Delivery`]: [`handle_called`](Engine::handle_called) and
///   [`handle_ended`](Engine::handle_ended), or [`handle_withdrawn`](Engine::handle_withdrawn).
/// - **The lease**: [`handle_lease`](Engine::handle_lease), if another process may take the store over.
/// - **Shutdown**: [`handle_stop`](Engine::handle_stop), then [`handle_abandon`](Engine::handle_abandon) if handlers run for too long.
/// - **Hand-over**: [`handle_ends`](Engine::handle_ends), while handlers are running in a process that has handed the store over.
///
/// # Outputs
///
/// After each input, in this order:
///
/// 1. [`poll_output`](Engine::poll_output) until it returns `None`. Commits and reads must be executed in the order in which they are returned; the others at any
///    time, and in any order.
/// 2. [`poll_timeout`](Engine::poll_timeout), which may have changed.
///
/// An engine on a store that was [begun](crate::store::Store::begin) starts with [`new`](Engine::new), [`restore_settings`](Engine::restore_settings),
/// [`restore_calendars`](Engine::restore_calendars) and [`restore_handed_over`](Engine::restore_handed_over), before all inputs.
///
/// # Invariants
///
/// 1. **The store is authoritative.** Each row in it is a timer to deliver; memory is a cache of the rows of the next few seconds. Where the two may differ, the
///    engine reads again: a cursor may go back at any time, since a known timer is not taken twice.
/// 2. **A timer is known from its load until the commit that removes it is answered.** One table spans the wheel, the queues, the handlers and that commit. So a
///    load that was read before a commit brings nothing back. A row that a commit failed to remove is read again from where a load left it out.
/// 3. **The bound is published before the read.** A timer that is written while its second is loaded goes into memory directly.
/// 4. **Memory is asked first.** A cancel that answers "done" has taken the timer out of memory before it asks the store.
/// 5. **One commit at a time**, in the order of the requests. A request for a timer that a commit is about to move waits for the answer.
#[derive(Debug)]
pub struct Engine {
    config: Arc<Config>,
    clocks: Clocks,
    ids: Ids,
    memory: Memory,
    buckets: Buckets,
    namespaces: Namespaces,
    poison: Poison,
    retention: Retention,
    calendars: Calendars,
    deferred: Deferred,
    hand_over: HandOver,
    link: StoreLink,
    /// Whether running handlers are no longer waited for.
    is_abandoned: bool,
}

/// Construction.
impl Engine {
    /// Creates an engine for a store that was [begun](crate::store::Store::begin), with the names of its handlers.
    #[must_use]
    pub fn new(config: Config, epoch: u64, handlers: Vec<Arc<str>>, now: Now) -> Engine {
        let config = Arc::new(config);
        let mut engine = Engine {
            clocks: Clocks::new(now),
            ids: Ids::new(epoch, config.partition, config.ids_in_epoch),
            memory: Memory::new(Arc::clone(&config), now),
            buckets: Buckets::new(&config),
            namespaces: Namespaces::new(Arc::clone(&config)),
            poison: Poison::new(epoch),
            retention: Retention::new(now),
            calendars: Calendars::new(epoch, config.partition),
            deferred: Deferred::new(),
            hand_over: HandOver::new(config.hands_over),
            link: StoreLink::new(Arc::clone(&config), now),
            is_abandoned: false,
            config,
        };
        for handler in handlers {
            engine.add_queue(&handler, true);
        }
        engine
    }

    /// Creates a stopped engine that keeps what an engine that has ended knew about its namespaces.
    pub fn after(ended: &mut Engine, now: Now) -> Engine {
        let mut engine = Engine::new(Config::default(), 1, Vec::new(), now);
        engine.handle_stop();
        engine.namespaces.take_over(&mut ended.namespaces);
        engine
    }

    /// Restores the settings that the store has.
    pub fn restore_settings(&mut self, settings: &[Setting]) {
        for it in settings {
            self.was_set(&it.name, Some(&it.value));
            self.poison.note_clean_end(&it.name, &it.value);
        }
        self.poison.find_suspects(self.link.now);
    }

    /// Restores the calendars that the store has.
    pub fn restore_calendars(&mut self, stored: impl IntoIterator<Item = calendar::Stored>) {
        self.calendars.restore(stored, &mut self.link);
    }

    /// Restores the timers that were [handed over](crate::store::Store::handed_over). They count against the limits of their handlers and namespaces.
    pub fn restore_handed_over(&mut self, rows: Vec<Row>) {
        let is_forgotten = planted::is(Planted::HandedOverForgotten);
        for row in rows.into_iter().filter(|_| !is_forgotten) {
            let queue = self.queue(&row.handler);
            self.hand_over.add_remote(row.id);
            self.namespaces[self.memory.queues[queue].namespace].remote += 1;
            self.memory.hold_remote(row, queue);
        }
    }
}

/// Inputs: time and the store.
impl Engine {
    /// Tells the engine the current time.
    pub fn handle_time(&mut self, now: Now) {
        if self.link.has_failed() {
            return;
        }
        self.link.now = now;
        let moved = self.clocks.read(now, self.config.largest_drift_micros);
        if let Some(moved) = moved {
            if moved != Moved::Slewed {
                self.retention.clock_was_set(now);
                self.poison.clock_was_set(now, self.clocks.begun);
            }
            self.memory.file_again(now);
            if moved == Moved::SetBack {
                self.calendars.clock_was_set_back(now);
            }
        }
        self.memory.expire(now);
        self.link.resend_overdue();
        self.advance();
    }

    /// Handles the outcome of a commit, which may arrive twice or never.
    pub fn handle_committed(&mut self, number: u64, outcomes: Result<Vec<Outcome>, StoreError>) {
        if self.link.has_failed() {
            return;
        }
        let error = outcomes.as_ref().err();
        if !self.link.complete_commit(number, error) {
            return;
        }
        match outcomes {
            Ok(outcomes) => self.committed(outcomes),
            Err(error) if error.is_definite() => self.refused(&error),
            Err(error) => self.fail(&error, true),
        }
        self.advance();
    }

    /// Handles the store's reply to a query, which may arrive twice or never.
    pub fn handle_reply(&mut self, number: u64, reply: Result<Reply, StoreError>) {
        if self.link.has_failed() {
            return;
        }
        let error = reply.as_ref().err();
        let Some((query, purpose)) = self.link.complete_read(number, error) else {
            return;
        };
        let now = self.link.now;
        match (purpose, reply) {
            (
                Purpose::Rows {
                    queue,
                    before,
                    limit,
                },
                Ok(Reply::Loaded(rows)),
            ) => {
                let load = (queue, before, limit);
                self.memory
                    .rows_loaded(load, rows, number, now, &self.namespaces);
                let oldest = self.link.oldest_load();
                self.memory.loaded.tombstones.prune(oldest);
            }
            (Purpose::Second(queue), Ok(Reply::First(first))) => {
                self.memory.second_found(queue, first);
            }
            (Purpose::Bucket(level), Ok(Reply::First(first))) => self.buckets.found(level, first),
            (Purpose::Archive(queue), Ok(Reply::First(first))) => {
                self.retention.found(queue, first);
            }
            // A damaged store must not be asked forever.
            (_, Err(error)) if !error.is_definite() => self.handle_failure(&error),
            (purpose, _) => self.link.retry_later(query, purpose),
        }
        match purpose {
            Purpose::Bucket(_) => self.advance(),
            _ if !self.link.is_open() => {}
            // There may be many handler queues: only this one is checked.
            Purpose::Rows { queue, .. } | Purpose::Second(queue) => {
                self.memory
                    .continue_loading(queue, &self.namespaces, &mut self.link);
            }
            Purpose::Archive(queue) => {
                self.retention
                    .continue_expiring(queue, &self.namespaces, &mut self.link);
                self.link.commit();
            }
        }
    }

    /// Handles a failure of the store outside of the commit in flight. Nothing more is asked of it.
    pub fn handle_failure(&mut self, error: &StoreError) {
        self.fail(error, false);
    }

    /// Handles a panic in one of the methods: the engine does nothing more.
    pub fn handle_panic(&mut self, why: &Arc<str>) {
        self.link.break_down(why);
    }
}

/// Inputs: requests.
impl Engine {
    /// Charges the inserts of a batch, given as counts per namespace name, against the quotas of their namespaces: all of them or none. So no part of a batch is
    /// inserted that would use up the quota again when the batch is retried.
    ///
    /// # Errors
    ///
    /// [`UnknownNamespace`](Answer::UnknownNamespace), or [`Quota`](Answer::Quota).
    pub fn charge(&mut self, counts: &[(&str, u64)]) -> Result<(), Answer> {
        self.namespaces.charge(counts, self.link.now)
    }

    /// Inserts a timer: [`Created`](Answer::Created), or [`Existing`](Answer::Existing) if another timer of its handler has its key, or an error of
    /// [`charge`](Engine::charge).
    pub fn handle_insert(&mut self, token: Token, timer: Row) {
        if self.link.refuses(token) {
            return;
        }
        // Refused without a charge.
        if self.ids.is_empty() {
            return self.handle_charged_insert(token, timer);
        }
        match self.namespaces.charge_one(&timer.handler, self.link.now) {
            Ok(()) => self.handle_charged_insert(token, timer),
            Err(answer) => self.link.answer(token, answer),
        }
    }

    /// Inserts a timer that was already [charged](Engine::charge).
    pub fn handle_charged_insert(&mut self, token: Token, timer: Row) {
        if self.link.refuses(token) {
            return;
        }
        self.ids.draw(&self.poison, &mut self.link);
        let Some(id) = self.ids.next() else {
            return self.link.answer(token, Answer::OutOfIds);
        };
        let row = Row { id, ..timer };
        if planted::is(Planted::AnswerBeforeCommit) {
            self.link.answer(token, Answer::Created(row.handle()));
        }
        let bucket = Bucket::of(row.due, self.link.now.due());
        self.request(Op::Insert(row, bucket), token);
    }

    /// Cancels a timer: [`Done`](Answer::Done), and it is not delivered; [`AlreadyFired`](Answer::AlreadyFired) if it is with its handler;
    /// [`NotFound`](Answer::NotFound).
    pub fn handle_cancel(&mut self, token: Token, handle: Handle) {
        self.change(token, Change::Cancel(token, handle));
    }

    /// Moves a timer to another due time. The answers are those of [`handle_cancel`](Engine::handle_cancel).
    pub fn handle_reschedule(&mut self, token: Token, handle: Handle, due: Due) {
        self.change(token, Change::Reschedule(token, handle, due));
    }

    /// Turns a dead letter back into a timer that is due now: [`Done`](Answer::Done) or [`NotFound`](Answer::NotFound).
    pub fn handle_redrive(&mut self, token: Token, id: Id) {
        let due = self.link.now.due();
        let bucket = Bucket::of(due, due);
        self.request(Op::Redrive(id, due, bucket), token);
    }

    /// Deletes a dead letter: [`Done`](Answer::Done) or [`NotFound`](Answer::NotFound).
    pub fn handle_discard(&mut self, token: Token, id: Id) {
        self.request(Op::Discard(id), token);
    }

    /// Deletes the dead letters and the archived key of a handler that belong to this key: [`Erased`](Answer::Erased). A pending timer stays.
    pub fn handle_erase(&mut self, token: Token, handler: &Arc<str>, key: &Arc<[u8]>) {
        let (handler, key) = (Arc::clone(handler), Arc::clone(key));
        self.request(Op::Erase { handler, key }, token);
    }

    /// Sets the policy of a namespace, and creates it if it does not exist: [`Done`](Answer::Done). With `is_new`, an existing namespace keeps its policy.
    pub fn handle_policy(&mut self, token: Token, name: &Arc<str>, policy: &Policy, is_new: bool) {
        if is_new && self.namespaces.is_created(name) && self.link.is_open() {
            return self.link.answer(token, Answer::Done);
        }
        self.request(policy_setting(name, policy), token);
    }

    /// Stops or resumes the deliveries of a namespace, durably: [`Done`](Answer::Done) or [`UnknownNamespace`](Answer::UnknownNamespace).
    pub fn handle_pause(&mut self, token: Token, name: &Arc<str>, is_paused: bool) {
        if self.knows(token, name) {
            self.request(pause_setting(name, is_paused), token);
        }
    }

    /// Stops or resumes the deliveries of a namespace in this run only. This is neither written nor answered.
    pub fn handle_drain(&mut self, name: &str, is_drained: bool) {
        if let Some(namespace) = self.namespaces.drain(name, is_drained) {
            let namespace = &self.namespaces[namespace];
            if namespace.is_closed() {
                self.memory.evict_queues(namespace.queues());
            }
            self.advance();
        }
    }

    /// Declares a calendar: [`Declared`](Answer::Declared). One that exists with the same definition stays unchanged. Without a plan, removes it:
    /// [`Done`](Answer::Done) or [`NotFound`](Answer::NotFound), and the timers that it has filed stay.
    pub fn handle_calendar(&mut self, token: Token, name: &Arc<str>, plan: Option<calendar::Plan>) {
        if self.link.refuses(token) {
            return;
        }
        self.calendars
            .request(name, token, plan, &self.namespaces, &mut self.link);
        self.link.commit();
    }

    /// Carries out a command from another process, once. The command may be passed in again until its [answer](Op::Reply) is written.
    pub fn handle_command(&mut self, number: u64, command: Command) {
        // During a hand-over, it is left to the next engine.
        let is_own = !self.hand_over.is_begun();
        let Some(token) = self.link.accept_command(number).filter(|_| is_own) else {
            return;
        };
        match command {
            Command::Cancel(handle) => self.handle_cancel(token, handle),
            Command::Reschedule(handle, due) => self.handle_reschedule(token, handle, due),
            Command::RunNow(handle) => {
                let due = self.link.now.due();
                self.handle_reschedule(token, handle, due);
            }
            Command::Insert(row) => self.handle_insert(token, row),
            Command::Redrive(id) => self.handle_redrive(token, id),
            Command::Discard(id) => self.handle_discard(token, id),
            Command::Pause(name) => self.handle_pause(token, &name, true),
            Command::Resume(name) => self.handle_pause(token, &name, false),
            Command::Policy(change) => self.replace_policy(token, &change),
        }
        self.advance();
    }
}

/// Inputs: handlers and shutdown.
impl Engine {
    /// Adds a handler of this name, for at most `concurrency` concurrent deliveries, with retries of its own if they are not those of its namespace.
    pub fn add_handler(&mut self, name: &Arc<str>, concurrency: usize, retries: Option<Retries>) {
        let queue = self.queue(name);
        self.memory.add_handler(queue, concurrency, retries);
        self.advance();
    }

    /// Records when the handler of a delivery was called, by the wall clock. The caller may report this as late as when the delivery has ended.
    pub fn handle_called(&mut self, handler: &str, due: Due, wall_micros: i64) {
        let due = due.as_millis().saturating_mul(1_000);
        let late = wall_micros.saturating_sub(due).max(0);
        self.namespaces.count_lateness(handler, late.unsigned_abs());
    }

    /// Withdraws a delivery whose handler was not called because the wall clock was set back, or because the [lease](Engine::handle_lease) is not held. The
    /// timer waits for its time again: no attempt is used up, nothing is written, and its place becomes free.
    pub fn handle_withdrawn(&mut self, delivery: &Delivery) {
        let Row { id, handler, .. } = &delivery.row;
        if let Some(end) = self.hand_over.defer(*id, None) {
            self.namespaces.was_not_called(handler, delivery.at);
            self.end(*id, end);
            self.advance();
        }
    }

    /// Handles the end of a delivery. Returns whether it failed and the timer is retried.
    pub fn handle_ended(&mut self, id: Id, ended: Ended) -> bool {
        let has_failed = matches!(ended, Ended::Failed(_) | Ended::Later(..));
        let now = self.hand_over.defer(id, Some(ended));
        now.map_or(has_failed, |end| self.end(id, end))
    }

    /// Takes the ends of deliveries in [other processes](Engine::restore_handed_over): the reply to [`Store::ends`](crate::store::Store::ends).
    pub fn handle_ends(&mut self, ends: Vec<(Id, Option<Ended>)>) {
        // Otherwise the engine that takes over reads them again.
        if self.link.is_open() {
            for (id, end) in self.hand_over.take_ended(ends, &self.memory) {
                self.end(id, end);
            }
            self.advance();
        }
    }

    /// Tells whether the [lease](crate::store::Lease) of the store is held. While it is not, no deliveries begin.
    pub fn handle_lease(&mut self, is_held: bool) {
        if self.link.set_lease(is_held) {
            self.advance();
        }
    }

    /// Begins no more deliveries, and accepts no more requests.
    pub fn handle_stop(&mut self) {
        self.link.stop();
        self.give_back_starts();
        self.advance();
    }

    /// Keeps the store until the end, because no handler will be running after this process has [stopped](Engine::handle_stop).
    pub fn handle_end_of_handlers(&mut self) {
        self.hand_over.disable();
    }

    /// Gives up the running handlers as part of a clean shutdown: after a restart, their timers are delivered again.
    pub fn handle_abandon(&mut self) {
        self.is_abandoned = true;
        self.advance();
    }
}

/// Outputs.
impl Engine {
    /// Returns the next action. Call it after each input, until it returns `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.link.poll()
    }

    /// When the [time](Engine::handle_time) has to be told next, in microseconds since boot. `None` if only another input can lead to an action.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.link.has_failed() {
            return None;
        }
        let store = self.link.resends_at();
        if self.link.is_stopping() {
            // A refused hand-over is tried again.
            return store.into_iter().chain(self.link.delayed_until()).min();
        }
        let now = self.link.now;
        let running = self.memory.loaded.running();
        let delivers_at = [
            self.namespaces.rates_let_at(running),
            self.poison.tries_at(now),
        ];
        let delivers_at = delivers_at.into_iter().flatten().min();
        let wall = [self.buckets.cascades_at(), self.memory.loads_at()];
        let wall = wall.into_iter().flatten().min();
        [
            store,
            self.memory.loaded.next(now),
            wall.map(|at| now.boot_at(at)),
            self.calendars.wakes_at(now),
            self.retention.expires_at(),
            delivers_at.filter(|_| self.link.may_deliver()),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}

/// Methods that concern several parts.
impl Engine {
    /// Ends the engine's work because its store has failed: see [`StoreLink::fail`].
    fn fail(&mut self, error: &StoreError, is_of_commit: bool) {
        let cause = self.link.fail(error, is_of_commit);
        self.deferred.failed(&cause, &mut self.link);
        self.calendars.failed(&cause, &mut self.link);
        self.link.put_out(Output::Failed(cause));
    }

    /// Does everything that can be done now.
    fn advance(&mut self) {
        if self.link.has_failed() {
            return;
        }
        if !self.link.is_stopping() {
            let (namespaces, link) = (&self.namespaces, &mut self.link);
            self.calendars.file(link);
            self.memory.load(namespaces, link);
            self.buckets.cascade(link);
            self.retention.expire(namespaces, link);
            if self.link.may_deliver() {
                self.deliveries().deliver();
            }
        } else {
            let (loaded, poison) = (&self.memory.loaded, &mut self.poison);
            let hand_over = &mut self.hand_over;
            hand_over.end_cleanly(self.is_abandoned, loaded, poison, &mut self.link);
        }
        self.link.commit();
    }

    /// The commit that hands over is durable, or was refused.
    fn hand_over_finished(&mut self, is_done: bool) {
        for (id, end) in self.hand_over.finished(is_done) {
            self.end(id, end);
        }
    }

    fn deliveries(&mut self) -> Deliveries<'_> {
        Deliveries {
            namespaces: &mut self.namespaces,
            memory: &mut self.memory,
            poison: &mut self.poison,
            link: &mut self.link,
        }
    }

    /// Begins deliveries in a place that has become free in this handler queue.
    fn deliver_after(&mut self, queue: usize) {
        if self.link.may_deliver() {
            self.deliveries().deliver_after(queue);
        }
    }

    /// Returns the queue of a handler, and adds a new one if there is none.
    fn queue(&mut self, handler: &Arc<str>) -> usize {
        match self.memory.queue_of(handler) {
            Some(queue) => queue,
            None => self.add_queue(handler, false),
        }
    }

    /// Adds the queue of a handler. If the handler was known before, the store may have archived some of its timers.
    fn add_queue(&mut self, handler: &Arc<str>, is_known: bool) -> usize {
        let queue = self.memory.queues.len();
        let namespace = self.namespaces.add_queue(handler, queue);
        self.retention.add_queue(handler, namespace, is_known);
        self.memory.add_queue(handler, namespace)
    }

    /// Notes that a row was written to this bucket.
    fn place(&mut self, row: &Row, bucket: Bucket) {
        match bucket.level {
            Level::Second => {
                let queue = self.queue(&row.handler);
                self.memory
                    .admit(row, queue, self.link.now, &self.namespaces);
            }
            _ => self.buckets.written(bucket),
        }
    }

    /// Writes a caller's operation.
    fn request(&mut self, op: Op, token: Token) {
        if !self.link.refuses(token) {
            self.link.request(op, token);
        }
    }

    /// Whether a namespace is known. If it is not, the request is answered.
    fn knows(&mut self, token: Token, namespace: &Arc<str>) -> bool {
        let is_known = self.namespaces.is_known(namespace) || !self.link.is_open();
        if !is_known {
            let answer = Answer::UnknownNamespace(Arc::clone(namespace));
            self.link.answer(token, answer);
        }
        is_known
    }

    /// Replaces the policy of a namespace, unless it has another one than the sender has seen.
    fn replace_policy(&mut self, token: Token, change: &PolicyChange) {
        let PolicyChange {
            namespace: name,
            before,
            policy,
        } = change;
        if self.link.refuses(token) || !self.knows(token, name) {
            return;
        }
        let namespace = self.namespaces.get(name);
        if namespace.is_some_and(|it| !it.is_unreadable && it.policy == *before) {
            self.link.request(policy_setting(name, policy), token);
        } else {
            let changed = Answer::Refused(Command::POLICY_CHANGED.into());
            self.link.answer(token, changed);
        }
    }

    /// Cancels or reschedules a timer.
    fn change(&mut self, token: Token, change: Change) {
        if !self.link.refuses(token) {
            let loaded = &mut self.memory.loaded;
            self.deferred.request(change, loaded, &mut self.link);
        }
    }

    /// Continues with the requests that waited for a timer to move, whether it has or not.
    fn take_up(&mut self, id: Id) {
        let loaded = &mut self.memory.loaded;
        self.deferred.take_up(id, loaded, &mut self.link);
    }

    /// Forgets a timer that has left, whether it was in memory or only recorded.
    fn retire(&mut self, id: Id) {
        self.poison.forget(id);
        self.memory.retire(id, self.link.loading());
    }

    /// Applies the value of a setting.
    fn was_set(&mut self, name: &str, value: Option<&[u8]>) {
        let closed = self.namespaces.was_set(name, value, &mut self.link);
        if let Some(namespace) = closed {
            self.memory
                .evict_queues(self.namespaces[namespace].queues());
        }
    }

    /// Frees the place of a delivery that is over. Returns the namespace of its handler.
    fn free_place(&mut self, of: &Delivered) -> usize {
        let queue = &mut self.memory.queues[of.queue];
        queue.running -= 1;
        let namespace = &mut self.namespaces[queue.namespace];
        match of.is_remote {
            true => namespace.remote -= 1,
            false => namespace.running -= 1,
        }
        self.poison.ended(queue.namespace, of.row.id);
        queue.namespace
    }

    /// Ends a delivery. Returns whether it failed and the timer is retried.
    fn end(&mut self, id: Id, end: End) -> bool {
        let report = self.hand_over.report(id, &end);
        let Some(ended) = end else {
            self.give_back(id);
            report.into_iter().for_each(|op| self.link.push(op));
            return false;
        };
        let Some(delivered) = self.memory.loaded.end(id) else {
            return false;
        };
        let namespace = self.free_place(&delivered);
        let Delivered { row, queue, .. } = delivered;
        if self.link.has_failed() {
            return false;
        }
        let now = self.link.now;
        if planted::is(Planted::NeverSettled) && ended == Ended::Well && id.get().is_multiple_of(16)
        {
            self.retire(id);
            self.deliver_after(queue);
            return false;
        }
        let of_handler = self.memory.queues[queue].retries.as_ref();
        let retrial = |row, error, delay| {
            self.namespaces
                .retrial(namespace, row, of_handler, error, delay, now)
        };
        let op = match ended {
            Ended::Well => self.namespaces[namespace].settling(row, now),
            Ended::Dead(error) => burial(row, error, now),
            Ended::Failed(error) => retrial(row, error, None),
            Ended::Later(error, delay) => retrial(row, error, Some(delay)),
            Ended::Snoozed(delay) => snoozing(row, delay, now),
        };
        let is_retried = matches!(op, Op::Retry(..));
        let comes_back = match planted::is(Planted::GivenUpComesBack) {
            true => !matches!(op, Op::Settle(_) | Op::Archive(..)),
            false => matches!(op, Op::Retry(..) | Op::Snooze(..)),
        };
        if comes_back {
            self.memory.loaded.comes_back(id);
        }
        if planted::is(Planted::ForgottenBeforeSettled) && matches!(op, Op::Settle(_)) {
            self.retire(id);
        }
        self.link.push(report.unwrap_or(op));
        self.deliver_after(queue);
        self.link.commit();
        is_retried
    }

    /// Gives back a timer whose handler was not called: it stays in the store, and is read again.
    fn give_back(&mut self, id: Id) {
        let Some(delivered) = self.memory.loaded.end(id) else {
            return;
        };
        self.free_place(&delivered);
        match planted::is(Planted::WithdrawnForgotten) {
            true => self.retire(id),
            false => self.memory.restore(id),
        }
    }

    /// Gives back the timers whose starts are not noted yet, so a store that refuses the notes does not delay the shutdown.
    fn give_back_starts(&mut self) {
        for row in self.link.take_starts() {
            let queue = self.queue(&row.handler);
            self.namespaces[self.memory.queues[queue].namespace].has_started();
            self.give_back(row.id);
        }
    }

    /// Hands a timer to its handler, once its start is noted.
    fn started(&mut self, row: &Row) {
        let queue = self.queue(&row.handler);
        let at = self.memory.queues[queue].namespace;
        let now = self.link.now;
        let namespace = &mut self.namespaces[at];
        namespace.has_started();
        let is_open = self.link.may_deliver() && !namespace.is_closed();
        let may_call = is_open && namespace.may_call(now.boot_micros);
        self.poison.started(row);
        if may_call && now.is_past(row.due) {
            self.deliveries().call(row, at);
        } else {
            // It may no longer begin: a pause, a stop, a lost lease, a slower rate or a clock that was set back came in between.
            self.give_back(row.id);
        }
    }
}

/// The consequences of a commit.
impl Engine {
    /// Applies a commit that is durable.
    fn committed(&mut self, outcomes: Vec<Outcome>) {
        match self.link.committed(outcomes.len()) {
            Err(error) => self.handle_failure(&error),
            Ok(None) => {}
            Ok(Some(ops)) => {
                let waiting = self.link.take_waiting();
                for ((op, callers), outcome) in ops.iter().zip(waiting).zip(outcomes) {
                    self.apply(op, callers, outcome);
                }
            }
        }
    }

    /// Applies the outcome of an operation.
    fn apply(&mut self, op: &Op, callers: Option<Callers>, outcome: Outcome) {
        let now = self.link.now;
        match (op, callers, outcome) {
            (Op::Insert(row, bucket), Some(callers), Outcome::Inserted) => {
                self.link.note_space(false);
                if !planted::is(Planted::AnswerBeforeCommit) {
                    let created = Answer::Created(row.handle());
                    self.link.answer(callers.token, created);
                }
                self.namespaces.count(&row.handler, |it| it.inserted += 1);
                self.place(row, *bucket);
            }
            (Op::Insert(row, _), Some(callers), Outcome::Exists(handle)) => {
                self.namespaces.count(&row.handler, |it| it.duplicates += 1);
                self.link.answer(callers.token, Answer::Existing(handle));
            }
            (Op::Insert(..), Some(callers), Outcome::Full) => {
                self.link.note_space(true);
                self.link.answer(callers.token, Answer::Full);
            }
            (Op::Settle(row), ..) => {
                self.retire(row.id);
                self.namespaces.count(&row.handler, |it| it.settled += 1);
            }
            (Op::Archive(row, at), ..) => {
                self.retire(row.id);
                let queue = self.queue(&row.handler);
                self.retention.archived(queue, *at);
                self.namespaces.count(&row.handler, |it| it.settled += 1);
            }
            (Op::Expire { handler, .. }, _, Outcome::Expired { is_empty }) => {
                let queue = self.queue(handler);
                self.retention.expired(queue, is_empty);
            }
            (Op::Start(row), ..) => self.started(row),
            (Op::Reply(number, _), ..) => self.link.command_answered(*number),
            (Op::HandOver(_), ..) => self.hand_over_finished(true),
            (Op::Report(id, _), ..) => self.retire(*id),
            (Op::Set(name, value), callers, _) => {
                self.was_set(name, value.as_deref());
                if let Some(callers) = callers {
                    self.link.answer_all(callers, &Answer::Done);
                }
            }
            (Op::Bury { row, error, .. }, ..) => {
                self.retire(row.id);
                self.namespaces.count(&row.handler, |it| it.dead += 1);
                let dead = Output::Dead(row.clone(), Arc::clone(error));
                self.link.put_out(dead);
            }
            (Op::Retry(row, due, bucket) | Op::Snooze(row, due, bucket), ..) => {
                let has_failed = matches!(op, Op::Retry(..));
                self.retire(row.id);
                self.namespaces.count(&row.handler, |it| match has_failed {
                    true => it.retried += 1,
                    false => it.snoozed += 1,
                });
                let later = Row {
                    due: *due,
                    failures: row.failures.saturating_add(has_failed.into()),
                    starts: 0,
                    ..row.clone()
                };
                self.place(&later, *bucket);
                self.take_up(row.id);
            }
            (Op::Cancel(handle), Some(callers), Outcome::Cancelled(true)) => {
                self.retire(handle.id);
                self.memory.left(&handle.handler, now);
                self.namespaces
                    .count(&handle.handler, |it| it.cancelled += 1);
                self.link.answer(callers.token, Answer::Done);
                self.deferred
                    .cancelled(handle.id, callers.others, &mut self.link);
            }
            (Op::Reschedule(handle, _, bucket), Some(callers), Outcome::Rescheduled(Some(row))) => {
                self.retire(handle.id);
                self.memory.left(&handle.handler, now);
                self.link.answer_all(callers, &Answer::Done);
                self.place(&row, *bucket);
                self.take_up(handle.id);
            }
            // A forged handle may have the id of an existing timer.
            (
                Op::Cancel(handle) | Op::Reschedule(handle, ..),
                Some(callers),
                Outcome::Cancelled(false) | Outcome::Rescheduled(None),
            ) => {
                self.memory.restore(handle.id);
                self.link.answer_all(callers, &Answer::NotFound);
                self.take_up(handle.id);
            }
            (Op::Erase { .. }, Some(callers), Outcome::Erased(erased)) => {
                self.link.answer_all(callers, &Answer::Erased(erased));
            }
            (Op::Discard(_), Some(callers), Outcome::Cancelled(true)) => {
                self.link.answer_all(callers, &Answer::Done);
            }
            (Op::Discard(_), Some(callers), Outcome::Cancelled(false))
            | (Op::Redrive(..), Some(callers), Outcome::Redriven(None)) => {
                self.link.answer_all(callers, &Answer::NotFound);
            }
            (Op::Redrive(_, _, bucket), Some(callers), Outcome::Redriven(Some(row))) => {
                self.link.answer_all(callers, &Answer::Done);
                self.namespaces.count(&row.handler, |it| it.redriven += 1);
                self.place(&row, *bucket);
            }
            (
                Op::Cascade { bucket, .. },
                _,
                Outcome::Cascaded {
                    is_empty,
                    buckets,
                    seconds,
                },
            ) => {
                self.buckets.cascaded(*bucket, is_empty, buckets);
                for (handler, second) in seconds {
                    let queue = self.queue(&handler);
                    self.memory.written(queue, second);
                }
            }
            (Op::All(ops), callers, Outcome::All(outcomes)) => {
                for (op, outcome) in ops.iter().zip(outcomes) {
                    match (op, outcome) {
                        (Op::Insert(row, bucket), Outcome::Inserted) => {
                            self.namespaces.count(&row.handler, |it| it.inserted += 1);
                            self.place(row, *bucket);
                        }
                        (Op::NextEpoch(_), Outcome::Epoch(epoch)) => {
                            self.ids.drawn(epoch);
                            self.poison.drawn(epoch);
                        }
                        _ => {}
                    }
                }
                let token = callers.map(|it| it.token);
                self.calendars
                    .written(ops, token, &self.namespaces, &mut self.link);
            }
            (op, callers, outcome) => {
                let error = format!("the store returned {outcome:?} for {op:?}");
                if let Some(callers) = callers {
                    let unknown = Answer::Unknown(error.as_str().into());
                    self.link.answer_all(callers, &unknown);
                }
                self.handle_failure(&StoreError::indeterminate(error));
            }
        }
    }

    /// Handles a refused commit, which has changed nothing. Callers are answered; the engine's own operations are retried.
    fn refused(&mut self, error: &StoreError) {
        let Some(ops) = self.link.refused() else {
            return;
        };
        // Steps that are written again would follow it.
        if self.link.take_hand_over() {
            self.hand_over_finished(false);
        }
        let waiting = self.link.take_waiting();
        let refused = Answer::Refused(error.to_string().into());
        for (op, callers) in ops.iter().zip(waiting) {
            let is_requested = callers.is_some();
            if let Some(callers) = callers {
                self.link.answer_all(callers, &refused);
            }
            match op {
                Op::All(ops) if matches!(ops[..], [Op::NextEpoch(_), ..]) => self.ids.refused(),
                Op::All(ops) => {
                    self.calendars
                        .refused(ops, &self.namespaces, &mut self.link);
                }
                // The clock and the policy may have changed before the retry.
                Op::Expire { .. } => self.retention.refused(),
                // More deliveries may have ended before the next attempt.
                Op::HandOver(_) => self.hand_over_finished(false),
                op if !is_requested => self.link.push_again(op),
                Op::Cancel(handle) | Op::Reschedule(handle, ..) => {
                    self.memory.restore(handle.id);
                    self.take_up(handle.id);
                }
                _ => {}
            }
        }
        self.deferred.refused(&refused, &mut self.link);
        if self.link.is_stopping() {
            self.give_back_starts();
        }
    }
}
