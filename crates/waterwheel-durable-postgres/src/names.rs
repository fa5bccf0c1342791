use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use waterwheel_durable_core::store::Id;

use crate::error::Error;

/// Maps the names of a partition's handlers to their numbers in the tables, which begin at 1. The connections of an opening share it, and use it one at a time.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<Table>);

#[derive(Debug, Default)]
pub(crate) struct Table {
    numbers: HashMap<Arc<str>, i32>,
    /// The name of number `n` at `n - 1`.
    names: Vec<Arc<str>>,
    /// How many of them are known to be in the database.
    stored: usize,
    /// How many timers the next commit may insert.
    pub(crate) room: u64,
    /// The timers that have a row in the table `attempts`, which the step that settles or moves one of them deletes.
    pub(crate) handed_over: HashSet<Id>,
}

impl Names {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// The number of no handler.
    pub(crate) const NONE: i32 = 0;

    /// Returns the number of a handler, or [`NONE`](Table::NONE) if it has never had a timer.
    pub(crate) fn number(&self, name: &str) -> i32 {
        self.numbers.get(name).copied().unwrap_or(Table::NONE)
    }

    /// Returns the number of a handler, which is assigned if it is new.
    pub(crate) fn assign(&mut self, name: &Arc<str>) -> i32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push(Arc::clone(name));
        let number = i32::try_from(self.names.len()).unwrap_or(i32::MAX);
        self.numbers.insert(Arc::clone(name), number);
        number
    }

    pub(crate) fn name(&self, number: i32) -> Result<Arc<str>, Error> {
        let at = usize::try_from(number)
            .ok()
            .and_then(|it| it.checked_sub(1));
        let name = at.and_then(|at| self.names.get(at));
        name.cloned().ok_or_else(|| {
            Error::Unexpected(format!("the table `handlers` has no number {number}").into())
        })
    }

    /// The names of all handlers that have ever had a timer.
    pub(crate) fn stored(&self) -> Vec<Arc<str>> {
        self.names[..self.stored].to_vec()
    }

    /// All numbers and names.
    pub(crate) fn all(&self) -> impl Iterator<Item = (i32, &Arc<str>)> {
        (1..).zip(&self.names)
    }

    /// The numbers and names that may not be in the database yet.
    pub(crate) fn not_stored(&self) -> Vec<(i32, Arc<str>)> {
        let new = self.all().skip(self.stored);
        new.map(|(number, name)| (number, Arc::clone(name)))
            .collect()
    }

    /// Records that all names are in the database.
    pub(crate) fn set_all_stored(&mut self) {
        self.stored = self.names.len();
    }

    /// Forgets the names that are not in the database.
    pub(crate) fn forget_not_stored(&mut self) {
        for name in self.names.drain(self.stored..) {
            self.numbers.remove(&name);
        }
    }
}
