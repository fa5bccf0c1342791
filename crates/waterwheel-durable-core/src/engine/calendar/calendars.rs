//! Which calendars are there, and what does each wait for?

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::store::Due;

use super::hash::Hash;
use super::plan::{Plan, Progress};
use crate::engine::Token;

/// How many numbers there are for calendars.
const NUMBERS: u32 = 1 << 22;

/// All calendars.
#[derive(Debug, Default)]
pub(in crate::engine) struct Calendars {
    all: BTreeMap<Arc<str>, Calendar>,
    /// When each is to be looked at, but for those that wait for a commit.
    wakeups: BTreeSet<(Due, Arc<str>)>,
    numbers: BTreeSet<u32>,
    /// How many were drawn in this run.
    drawn: i64,
}

#[derive(Debug)]
pub(super) struct Calendar {
    pub(super) state: State,
    /// What a commit is to make of it.
    pub(super) writes: Option<Writes>,
    /// Requests that wait for that commit.
    pub(super) waiting: VecDeque<CalendarRequest>,
    wakes_at: Option<Due>,
}

#[derive(Debug)]
pub(super) enum State {
    /// It is about to be declared for the first time.
    New,
    There(Plan, Progress),
    /// What the store has of it cannot be read, for this reason. It stays as it is until it is declared anew.
    Unreadable(Option<u32>, Arc<str>),
}

#[derive(Debug)]
pub(super) enum Writes {
    Occurrences(Progress, Option<Due>),
    Definition(Plan, Progress, Declared),
    Removal,
}

#[derive(Debug)]
pub(super) enum CalendarRequest {
    Declare(Token, Plan),
    Remove(Token),
}

impl CalendarRequest {
    pub(super) fn token(&self) -> Token {
        match self {
            CalendarRequest::Declare(token, _) | CalendarRequest::Remove(token) => *token,
        }
    }
}

/// The result of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// The calendar is new.
    Created,
    /// The calendar replaces one with the same name. It starts from now, or continues from where the old one was if the
    /// times are the same.
    Replaced,
    /// An identical calendar exists.
    Unchanged,
}

impl Calendar {
    fn new(state: State) -> Calendar {
        Calendar {
            state,
            writes: None,
            waiting: VecDeque::new(),
            wakes_at: None,
        }
    }

    pub(super) fn number(&self) -> Option<u32> {
        match &self.state {
            State::New => None,
            State::There(_, progress) => Some(progress.number),
            State::Unreadable(number, _) => *number,
        }
    }
}

impl Calendars {
    pub(super) fn get(&self, name: &str) -> Option<&Calendar> {
        self.all.get(name)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Calendar> {
        self.all.get_mut(name)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&Arc<str>, &Calendar)> {
        self.all.iter()
    }

    pub(super) fn waiting(&mut self) -> impl Iterator<Item = CalendarRequest> {
        self.all
            .values_mut()
            .flat_map(|it| std::mem::take(&mut it.waiting))
    }

    /// The calendar of this name, which is new if there was none.
    pub(super) fn entry(&mut self, name: &Arc<str>) -> &mut Calendar {
        let entry = self.all.entry(Arc::clone(name));
        entry.or_insert_with(|| Calendar::new(State::New))
    }

    pub(super) fn set(&mut self, name: &Arc<str>, state: State) {
        let calendar = self.entry(name);
        let before = calendar.number();
        calendar.state = state;
        let number = calendar.number();
        if let Some(before) = before {
            self.numbers.remove(&before);
        }
        self.numbers.extend(number);
    }

    pub(super) fn remove(&mut self, name: &str) {
        let removed = self.all.remove(name);
        if let Some(number) = removed.and_then(|it| it.number()) {
            self.numbers.remove(&number);
        }
    }

    /// A number that no other calendar has, and that hardly one has had: what was filed by that may still be there.
    pub(super) fn draw(&mut self, name: &str, epoch: u64) -> Option<u32> {
        self.drawn += 1;
        let mut hash = Hash::new();
        hash.bytes(name.as_bytes());
        hash.number(epoch.cast_signed());
        hash.number(self.drawn);
        // The upper bits are better mixed than the lower ones.
        let first = (hash.finish() >> 42) as u32;
        let mut numbers = (0..NUMBERS).map(|it| (first + it) % NUMBERS);
        let number = numbers.find(|it| !self.numbers.contains(it))?;
        self.numbers.insert(number);
        Some(number)
    }

    pub(super) fn release(&mut self, number: u32) {
        self.numbers.remove(&number);
    }

    /// The calendar is to be looked at then, and not before.
    pub(super) fn look_at(&mut self, name: &Arc<str>, at: Option<Due>) {
        let Some(calendar) = self.all.get_mut(name) else {
            return;
        };
        if let Some(before) = std::mem::replace(&mut calendar.wakes_at, at) {
            self.wakeups.remove(&(before, Arc::clone(name)));
        }
        self.wakeups.extend(at.map(|at| (at, Arc::clone(name))));
    }

    /// All are to be looked at, but for those that wait for a commit.
    pub(super) fn look_at_all(&mut self, now: Due) {
        let waiting = std::mem::take(&mut self.wakeups);
        for (_, name) in waiting {
            if let Some(calendar) = self.all.get_mut(&name) {
                calendar.wakes_at = Some(now);
                self.wakeups.insert((now, name));
            }
        }
    }

    /// How many calendars and numbers there are.
    #[cfg(test)]
    pub(in crate::engine) fn len(&self) -> (usize, usize) {
        (self.all.len(), self.numbers.len())
    }

    /// Other calendars have all the numbers that there are.
    #[cfg(test)]
    pub(in crate::engine) fn use_up_numbers(&mut self) {
        self.numbers = (0..NUMBERS).collect();
    }

    /// The next one to look at, and when.
    pub(super) fn first(&self) -> Option<&(Due, Arc<str>)> {
        self.wakeups.first()
    }
}
