//! The store of a life: its work, its faults, and its state after a crash.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use waterwheel_durable_core::engine::{Config, Engine, Now, Output, Reply};
use waterwheel_durable_core::store::{Handle, MemoryStore, Op, Outcome, Row, Store, StoreError};

use crate::beat::read;
use crate::namespaces::Terms;

/// A fault that is planted in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// A cascade deletes the rows, and writes them in a second transaction.
    CascadeInTwo,
    /// Several timers may have the same key.
    KeysIgnored,
    /// A key stays taken after its timer was settled.
    KeysKept,
    /// An insert with a taken key returns the handle of another timer.
    KeyOfAnother,
    /// Dead letters are deleted.
    DeadLettersLost,
    /// The number of a timer's failures is not counted.
    FailuresForgotten,
    /// Noted starts are not loaded.
    StartsForgotten,
    /// Timers have the payloads of others.
    PayloadsSwapped,
    /// Timers that should be archived are deleted.
    ArchiveLost,
    /// Archived timers are deleted regardless of their day.
    ExpiresAll,
    /// A setting is not written.
    SettingsLost,
    /// A written insert is answered with "full".
    FullAndWritten,
}

/// The timers that have the keys of handlers.
type Keys = HashMap<(Arc<str>, Arc<[u8]>), Handle>;

/// The value, of a hundred, that makes the sync of a commit fail.
const FAILS: u32 = 5;

/// A reply, with the number of the request.
#[derive(Debug)]
pub(crate) enum Replied {
    Commit(u64, Result<Vec<Outcome>, StoreError>),
    Read(u64, Result<Reply, StoreError>),
}

impl Replied {
    /// Whether the commit was carried out.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Replied::Commit(_, Ok(_)))
    }

    /// Turns the reply to this request into an error.
    fn failed(self, error: StoreError) -> Replied {
        match self {
            Replied::Commit(number, _) => Replied::Commit(number, Err(error)),
            Replied::Read(number, _) => Replied::Read(number, Err(error)),
        }
    }

    fn copy(&self) -> Replied {
        match self {
            Replied::Commit(number, reply) => Replied::Commit(*number, copy(reply)),
            Replied::Read(number, reply) => Replied::Read(*number, copy(reply)),
        }
    }
}

/// A store with one thread, which answers later, in order.
#[derive(Debug)]
pub(crate) struct Disk {
    store: MemoryStore,
    /// Whether a commit was made that may not be synced.
    is_unsynced: bool,
    /// The possible states of the store after a crash.
    unsynced: Vec<MemoryStore>,
    /// The commits and reads that were requested.
    in_flight: VecDeque<Output>,
    replies: VecDeque<Replied>,
    broken: Option<Broken>,
    /// The keys that should be free again.
    kept: Keys,
    /// The percentage of calls that it refuses.
    refuses: u32,
    /// The last commit that was done.
    done: u64,
}

impl Disk {
    pub(crate) fn new(broken: Option<Broken>, refuses: u32) -> Disk {
        Disk {
            store: MemoryStore::new(),
            is_unsynced: false,
            unsynced: Vec::new(),
            in_flight: VecDeque::new(),
            replies: VecDeque::new(),
            broken,
            kept: HashMap::new(),
            refuses,
            done: 0,
        }
    }

    pub(crate) fn store(&mut self) -> &mut MemoryStore {
        &mut self.store
    }

    /// Opens the store in a new process.
    pub(crate) fn begin(
        &mut self,
        config: &Config,
        now: Now,
        ahead: i64,
        handlers: &[&str],
    ) -> Engine {
        let store = &mut self.store;
        let epoch = store.begin().unwrap_or(1);
        let known = store.handlers().unwrap_or_default();
        let settings = store.settings().unwrap_or_default();
        let mut engine = Engine::new(config.clone(), epoch, known, now);
        engine.restore_settings(&settings);
        engine.restore_calendars(read(&settings, ahead, handlers));
        engine
    }

    /// Sets whether there is no space for inserts.
    pub(crate) fn set_full(&mut self, is_full: bool) {
        self.store.set_full(is_full);
    }

    /// Creates these namespaces, as an earlier process.
    pub(crate) fn create<'a>(&mut self, namespaces: impl Iterator<Item = (&'a str, &'a Terms)>) {
        let create = |(name, terms): (&str, &Terms)| {
            let name = format!("namespace/{name}").into();
            Op::Set(name, Some(terms.stored().into()))
        };
        let steps: Vec<_> = namespaces.map(create).collect();
        let created = self.store.commit(u64::MAX, &steps);
        assert!(created.is_ok(), "{created:?}");
    }

    pub(crate) fn ask(&mut self, request: Output) {
        self.in_flight.push_back(request);
    }

    /// Whether a commit was made that has no answer yet.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.is_unsynced
    }

    fn is_synced(&mut self) {
        self.is_unsynced = false;
        self.unsynced.clear();
    }

    pub(crate) fn is_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    pub(crate) fn has_replied(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Handles the next request, and replies, if nothing goes wrong. Returns whether it has replied, or had no request. `stops`: the machine will stop before a
    /// commit is synced.
    pub(crate) fn work(&mut self, rng: &mut Rng, has_faults: bool, stops: bool) -> bool {
        let Some(request) = self.in_flight.pop_front() else {
            return true;
        };
        // The store has one thread: earlier commits are synced.
        self.is_synced();
        let fault = if has_faults { rng.u32(0..100) } else { 100 };
        // A commit that was done cannot be refused when it is requested again.
        let is_done = matches!(request, Output::Commit { commit, .. } if commit == self.done);
        let is_refused = has_faults && rng.u32(0..100) < self.refuses && !is_done;
        let fault = if is_refused { 100 } else { fault };
        let error = || StoreError::definite("refused by the simulator");
        let replied = match request {
            Output::Commit {
                number,
                commit,
                ops,
            } => {
                // A copy costs more than everything else. Without one, the commit was synced just before the machine stops.
                let copies = stops || fault == FAILS;
                let outcomes = match is_refused {
                    true => Err(error()),
                    false => self.commit(commit, &ops, copies),
                };
                Replied::Commit(number, outcomes)
            }
            Output::Read(number, _) if is_refused => Replied::Read(number, Err(error())),
            Output::Read(number, query) => {
                let reply = query.execute(&mut self.store);
                let reply = reply.map(|reply| match reply {
                    Reply::Loaded(rows) => Reply::Loaded(self.broken_rows(rows)),
                    reply => reply,
                });
                Replied::Read(number, reply)
            }
            other => unreachable!("{other:?} is nothing to a store"),
        };
        let replied = match fault {
            // The reply is lost.
            0..2 => return false,
            2..5 => {
                self.replies.push_back(replied.copy());
                replied
            }
            FAILS if replied.is_done() => {
                let failed = StoreError::indeterminate("an fsync failed in the simulator");
                replied.failed(failed)
            }
            6 if !replied.is_done() && rng.u32(0..20) == 0 => {
                let failed = StoreError::indeterminate("a page cannot be read in the simulator");
                replied.failed(failed)
            }
            _ => replied,
        };
        self.replies.push_back(replied);
        true
    }

    /// Makes a commit. `copies`: a crash may leave the store as it was before.
    fn commit(
        &mut self,
        number: u64,
        steps: &[Op],
        copies: bool,
    ) -> Result<Vec<Outcome>, StoreError> {
        self.is_unsynced = true;
        if copies {
            self.plant(steps);
            self.unsynced.push(self.store.clone());
        }
        self.done = number;
        let broken = self.broken_steps(steps);
        let outcomes = self.store.commit(number, &broken)?;
        Ok(self.broken_outcomes(steps, outcomes))
    }

    /// Takes the next reply. Replies to reads may be delayed.
    pub(crate) fn reply(&mut self, rng: &mut Rng) -> Option<Replied> {
        let is_commit = |it: &Replied| matches!(it, Replied::Commit(..) | Replied::Read(_, Err(_)));
        let first = match rng.bool() {
            true => self.replies.iter().position(is_commit).unwrap_or(0),
            false => 0,
        };
        let reply = self.replies.remove(first);
        if reply.as_ref().is_some_and(Replied::is_done) {
            // The commit was synced before it was answered.
            self.is_synced();
        }
        reply
    }

    /// Stops the machine. Unsynced commits survive, or not.
    pub(crate) fn crash(&mut self, rng: &mut Rng) {
        if !self.unsynced.is_empty() && rng.bool() {
            let left = rng.usize(0..self.unsynced.len());
            self.store = self.unsynced.swap_remove(left);
        }
    }

    /// Ends a process. Its pending requests are not done, or not answered.
    pub(crate) fn restart(&mut self) {
        self.done = 0;
        self.in_flight.clear();
        self.replies.clear();
        self.is_synced();
    }

    fn broken_steps(&mut self, steps: &[Op]) -> Vec<Op> {
        let kept = &mut self.kept;
        let step = |op: &Op| match (self.broken, op) {
            (Some(Broken::DeadLettersLost), Op::Bury { row, .. }) => Op::Settle(row.clone()),
            (Some(Broken::ArchiveLost), Op::Archive(row, _)) => Op::Settle(row.clone()),
            (Some(Broken::ExpiresAll), Op::Expire { handler, limit, .. }) => Op::Expire {
                handler: Arc::clone(handler),
                before: i64::MAX,
                limit: *limit,
            },
            (Some(Broken::SettingsLost), Op::Set(..)) => Op::Set("nowhere".into(), None),
            (Some(Broken::KeysKept), Op::Settle(row)) => {
                if let Some(key) = &row.key {
                    let key = (Arc::clone(&row.handler), Arc::clone(key));
                    kept.insert(key, row.handle());
                }
                op.clone()
            }
            (Some(Broken::KeysKept), Op::Insert(row, _)) if kept_by(kept, row).is_some() => {
                Op::Set("nowhere".into(), None)
            }
            (Some(Broken::KeysIgnored), Op::Insert(row, bucket)) => {
                let mut row = row.clone();
                // Make each key unique.
                let own = |key: &Arc<[u8]>| [&key[..], &row.id.get().to_le_bytes()].concat();
                row.key = row.key.as_ref().map(|key| own(key).into());
                Op::Insert(row, *bucket)
            }
            _ => op.clone(),
        };
        steps.iter().map(step).collect()
    }

    fn broken_outcomes(&self, steps: &[Op], mut outcomes: Vec<Outcome>) -> Vec<Outcome> {
        for (outcome, step) in outcomes.iter_mut().zip(steps) {
            if let Op::Insert(row, _) = step
                && *outcome == Outcome::Done
                && let Some(other) = kept_by(&self.kept, row)
            {
                *outcome = Outcome::Exists(other.clone());
            }
            if self.broken == Some(Broken::FullAndWritten)
                && self.done.is_multiple_of(8)
                && *outcome == Outcome::Inserted
            {
                *outcome = Outcome::Full;
            }
            if self.broken == Some(Broken::KeyOfAnother)
                && let Outcome::Exists(handle) = outcome
            {
                handle.due = handle.due.after(Duration::from_secs(1));
            }
        }
        outcomes
    }

    fn broken_rows(&self, mut rows: Vec<Row>) -> Vec<Row> {
        match self.broken {
            Some(Broken::FailuresForgotten) => rows.iter_mut().for_each(|row| row.failures = 0),
            Some(Broken::StartsForgotten) => rows.iter_mut().for_each(|row| row.starts = 0),
            Some(Broken::KeysIgnored) => {
                for key in rows.iter_mut().filter_map(|row| row.key.as_mut()) {
                    *key = key[..key.len() - 8].into();
                }
            }
            Some(Broken::PayloadsSwapped) => {
                if let [first, .., last] = &mut rows[..] {
                    std::mem::swap(&mut first.payload, &mut last.payload);
                }
            }
            _ => {}
        }
        rows
    }

    fn plant(&mut self, steps: &[Op]) {
        if self.broken == Some(Broken::CascadeInTwo) {
            for step in steps {
                if let Op::Cascade { bucket, limit, .. } = step {
                    self.unsynced.push(self.store.without(*bucket, *limit));
                }
            }
        }
    }
}

/// The timer that still has the key of a row, although the key should be free.
fn kept_by<'a>(kept: &'a Keys, row: &Row) -> Option<&'a Handle> {
    kept.get(&(Arc::clone(&row.handler), Arc::clone(row.key.as_ref()?)))
}

fn copy<T: Clone>(reply: &Result<T, StoreError>) -> Result<T, StoreError> {
    match reply {
        Ok(reply) => Ok(reply.clone()),
        Err(error) => Err(StoreError::definite(error.to_string())),
    }
}
