use std::fmt::Debug;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::Duration;

use waterwheel_durable::store::{
    Command, Dead, DeadLetters, HandlePage, Hint, Id, Lease, Level, MemoryStore, Op, Outcome,
    PageLimit, PendingCursor, Row, RowCursor, Scope, Store, StoreError, forward,
};

use super::HOUR;

/// An in-memory store that outlives the service, like a file, and can produce faults.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shelf(Arc<Inside>);

#[derive(Debug, Default)]
struct Inside {
    store: Mutex<MemoryStore>,
    control: Mutex<Control>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Control {
    fault: Option<Fault>,
    /// The number of commits after which all are refused.
    refuses_after: Option<usize>,
    is_held: bool,
    /// The number of commits that have begun.
    commits: usize,
    has_failed: bool,
    asked_after: usize,
    /// The bytes of each page of dead letters.
    pages: Vec<usize>,
    /// The number of pages of handles.
    lists: usize,
    commands: Vec<(u64, Command)>,
    hint: Option<Hint>,
    has_no_lease: bool,
    /// The number of looks at the lease.
    looks: usize,
    given_up: usize,
}

/// The fault of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The commit is refused.
    Refuses,
    /// The commit is done, but reported as failed.
    Fails,
    /// The store panics.
    Panics,
    /// The commit is done, but an outcome is missing.
    LeavesOut,
    /// Dead letters cannot be read.
    Unreadable,
}

impl Shelf {
    /// Sets the fault of all further commits.
    pub(crate) fn fault(&self, fault: Option<Fault>) {
        self.control().fault = fault;
    }

    /// Carries out this many more commits, and refuses all after them.
    pub(crate) fn refuse_after(&self, commits: usize) {
        self.control().refuses_after = Some(commits);
    }

    /// Keeps commits that begin from now on from ending before [`go_on`](Shelf::go_on). Returns how many have begun before.
    pub(crate) fn hold(&self) -> usize {
        let mut control = self.control();
        control.is_held = true;
        control.commits
    }

    pub(crate) fn go_on(&self) {
        self.control().is_held = false;
        self.0.changed.notify_all();
    }

    pub(crate) fn commits(&self) -> usize {
        self.control().commits
    }

    /// Sends a command, as another process.
    pub(crate) fn send(&self, number: u64, command: Command) {
        self.control().commands.push((number, command));
        self.give_hint();
    }

    /// Sets whether the lease is held. The service looks at it for itself only before deliveries, unless it is given a hint.
    pub(crate) fn set_lease(&self, is_held: bool) {
        self.control().has_no_lease = !is_held;
    }

    pub(crate) fn looks(&self) -> usize {
        self.control().looks
    }

    pub(crate) fn given_up(&self) -> usize {
        self.control().given_up
    }

    pub(crate) fn give_hint(&self) {
        let hint = self.control().hint.clone();
        hint.unwrap().give();
    }

    /// The number of calls to the store after it had failed.
    pub(crate) fn asked_after(&self) -> usize {
        self.control().asked_after
    }

    /// The number of bytes of dead letters returned by each call.
    pub(crate) fn pages(&self) -> Vec<usize> {
        self.control().pages.clone()
    }

    /// The number of pages of handles that were read.
    pub(crate) fn lists(&self) -> usize {
        self.control().lists
    }

    /// The value of a setting.
    pub(crate) fn setting(&self, name: &str) -> Option<String> {
        let settings = self.store().settings().unwrap();
        let setting = settings.iter().find(|it| &*it.name == name)?;
        Some(String::from_utf8(setting.value.to_vec()).unwrap())
    }

    /// Sets the value of a setting, while no service has the store.
    pub(crate) fn set(&self, name: &str, value: &str) {
        let value = Some(value.as_bytes().into());
        let set = Op::Set(name.into(), value);
        self.store().commit(u64::MAX, &[set]).unwrap();
    }

    /// Sets whether there is no space for inserts, from the next commit on.
    pub(crate) fn set_full(&self, is_full: bool) {
        self.store().set_full(is_full);
    }

    /// The number of timers.
    pub(crate) fn len(&self) -> usize {
        self.store().len()
    }

    /// A reference that is dead once the store is dropped.
    pub(crate) fn watch(&self) -> Weak<impl Debug + use<>> {
        Arc::downgrade(&self.0)
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        self.0.control.lock().unwrap()
    }

    fn store(&self) -> MutexGuard<'_, MemoryStore> {
        self.0.store.lock().unwrap()
    }

    fn asked(&self) {
        let mut control = self.control();
        control.asked_after += usize::from(control.has_failed);
    }
}

impl Store for Shelf {
    fn begin(&mut self) -> Result<u64, StoreError> {
        self.control().has_failed = false;
        self.store().begin()
    }

    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        self.asked();
        let fault = {
            let mut control = self.control();
            control.commits += 1;
            let held = |control: &mut Control| control.is_held;
            let mut control = self.0.changed.wait_while(control, held).unwrap();
            match control.refuses_after {
                Some(0) => (control.fault, control.refuses_after) = (Some(Fault::Refuses), None),
                Some(left) => control.refuses_after = Some(left - 1),
                None => {}
            }
            control.has_failed |= matches!(control.fault, Some(Fault::Fails | Fault::Panics));
            control.fault
        };
        match fault {
            Some(Fault::Refuses) => return Err(StoreError::definite("the disk is full")),
            Some(Fault::Panics) => std::panic::resume_unwind(Box::new("a bug")),
            _ => {}
        }
        let mut outcomes = self.store().commit(number, steps)?;
        match fault {
            Some(Fault::Fails) => return Err(StoreError::indeterminate("the disk is broken")),
            Some(Fault::LeavesOut) => drop(outcomes.pop()),
            _ => {}
        }
        Ok(outcomes)
    }

    fn load(
        &mut self,
        handler: &str,
        after: RowCursor,
        before: i64,
        limit: PageLimit,
    ) -> Result<Vec<Row>, StoreError> {
        self.asked();
        self.store().load(handler, after, before, limit)
    }

    fn first_second(&mut self, handler: &str, from: i64) -> Result<Option<i64>, StoreError> {
        self.asked();
        self.store().first_second(handler, from)
    }

    fn first_bucket(&mut self, level: Level) -> Result<Option<i64>, StoreError> {
        self.asked();
        self.store().first_bucket(level)
    }

    forward!(this => this.store(); load_level handlers find get counts rest);

    fn handles(
        &mut self,
        scope: Scope<'_>,
        after: Option<PendingCursor>,
        limit: usize,
    ) -> Result<HandlePage, StoreError> {
        self.asked();
        self.control().lists += 1;
        self.store().handles(scope, after, limit)
    }

    /// So rarely that no test waits for it.
    fn commands_every(&self) -> Option<Duration> {
        Some(HOUR)
    }

    fn lease(&self) -> Lease {
        // It stays with the handles of the service after the store is dropped.
        let inside = Arc::downgrade(&self.0);
        Lease::new(move || {
            inside.upgrade().is_none_or(|inside| {
                let mut control = inside.control.lock().unwrap();
                control.looks += 1;
                !control.has_no_lease
            })
        })
    }

    fn give_up(&mut self) {
        self.control().given_up += 1;
    }

    fn set_hint(&mut self, hint: Hint) {
        self.control().hint = Some(hint);
    }

    fn commands(&mut self) -> Result<Vec<(u64, Command)>, StoreError> {
        self.asked();
        Ok(std::mem::take(&mut self.control().commands))
    }

    fn dead(
        &mut self,
        scope: Scope<'_>,
        after: Id,
        limit: PageLimit,
    ) -> Result<DeadLetters, StoreError> {
        self.asked();
        if self.control().fault == Some(Fault::Unreadable) {
            self.control().has_failed = true;
            return Err(StoreError::indeterminate("damage"));
        }
        let page = self.store().dead(scope, after, limit)?;
        let bytes = page.dead.iter().map(Dead::bytes).sum();
        self.control().pages.push(bytes);
        Ok(page)
    }
}
