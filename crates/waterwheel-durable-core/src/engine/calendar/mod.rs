//! Decides which occurrence of a calendar becomes a timer, and when.
//!
//! | file | question |
//! |---|---|
//! | `plan` | what is a calendar to the engine, and how far has it come? |
//! | `decide` | which occurrences are filed now, and when is the calendar decided again? |
//!
//! Nothing is filed ahead. When the wall clock reaches an occurrence, one operation writes it as a timer, due at its time, and moves the cursor of the calendar, so
//! a crash cannot separate the two. Thus one place decides what happens to missed occurrences, and a calendar that is changed or removed
//! leaves nothing behind.

mod decide;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::store::{Bucket, Due, Id, Op, Row};

pub use decide::{Decision, decide};
pub use plan::{Cursor, Declared, FIRST, Hash, MISSED_AFTER, Misfire, Occurrences, Plan, Progress};

use super::clocks::Now;
use super::io::{Answer, Output, Token};
use super::namespaces::{Namespaces, namespace_in};
use super::planted::{self, Planted};
use super::store_link::StoreLink;

/// The prefix of the settings that hold calendars.
pub const SETTINGS: &str = "calendar/";

/// The number of distinct calendar numbers.
const NUMBERS: u32 = 1 << 22;

/// The maximum filed in one operation: this many occurrences, and about this many bytes of payload.
const MAX: usize = 64;
const MAX_BYTES: usize = 1 << 20;

/// A calendar in the store.
#[derive(Debug)]
pub struct Stored {
    /// The name.
    pub name: Arc<str>,
    /// The plan and its progress; or why they cannot be read, with the number if that could be.
    pub read: Result<(Plan, Progress), (Option<u32>, Arc<str>)>,
}

/// The description of a calendar for a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The name.
    pub name: Arc<str>,
    /// The definition, or why it cannot be read.
    pub definition: Result<Arc<str>, Arc<str>>,
    /// The next occurrence. `None` if there are no more.
    pub next: Option<Due>,
    /// The last occurrence that was filed.
    pub last: Option<Due>,
}

/// All calendars.
#[derive(Debug)]
pub(super) struct Calendars {
    /// The epoch of the ids: see [`Id::new`].
    epoch: u64,
    /// The partition of the ids.
    partition: u8,
    all: BTreeMap<Arc<str>, Calendar>,
    /// When each calendar is decided next, except those that wait for a commit.
    wakeups: BTreeSet<(Due, Arc<str>)>,
    numbers: BTreeSet<u32>,
    /// The number of calendar numbers drawn in this run.
    drawn: i64,
}

#[derive(Debug)]
struct Calendar {
    state: State,
    /// The changes that a commit will write.
    writes: Option<Writes>,
    /// The requests that wait for that commit.
    waiting: VecDeque<CalendarRequest>,
    wakes_at: Option<Due>,
}

#[derive(Debug)]
enum State {
    /// About to be declared for the first time.
    New,
    There(Plan, Progress),
    /// The stored calendar cannot be read, for this reason. It stays unchanged until it is declared again.
    Unreadable(Option<u32>, Arc<str>),
}

#[derive(Debug)]
enum Writes {
    Occurrences(Progress, Option<Due>),
    Definition(Plan, Progress, Declared),
    Removal,
}

/// A declaration, or a removal if there is no plan.
#[derive(Debug)]
struct CalendarRequest {
    token: Token,
    plan: Option<Plan>,
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

    fn number(&self) -> Option<u32> {
        match &self.state {
            State::New => None,
            State::There(_, progress) => Some(progress.number),
            State::Unreadable(number, _) => *number,
        }
    }
}

impl Calendars {
    pub(super) fn new(epoch: u64, partition: u8) -> Calendars {
        Calendars {
            epoch,
            partition,
            all: BTreeMap::new(),
            wakeups: BTreeSet::new(),
            numbers: BTreeSet::new(),
            drawn: 0,
        }
    }

    /// Restores the calendars that the store has, as it is opened.
    pub(super) fn restore(
        &mut self,
        stored: impl IntoIterator<Item = Stored>,
        link: &mut StoreLink,
    ) {
        let now = link.now.due();
        for Stored { name, read } in stored {
            match read {
                Ok((plan, progress)) => {
                    self.set(&name, State::There(plan, progress));
                    self.wake_at(&name, Some(now));
                }
                Err((number, why)) => {
                    let unreadable = State::Unreadable(number, Arc::clone(&why));
                    self.set(&name, unreadable);
                    link.put_out(Output::UnreadableCalendar(name, why));
                }
            }
        }
    }

    /// All calendars, in order of their names.
    pub(super) fn infos(&self) -> impl Iterator<Item = Info> {
        self.all.iter().filter_map(|(name, calendar)| {
            let (definition, cursor) = match &calendar.state {
                State::New => return None,
                State::There(plan, progress) => (Ok(plan), Some(&progress.cursor)),
                State::Unreadable(_, why) => (Err(Arc::clone(why)), None),
            };
            let next = definition.as_ref().ok().zip(cursor);
            Some(Info {
                name: Arc::clone(name),
                next: next.and_then(|(plan, cursor)| plan.occurrences.next_after(cursor.at)),
                last: cursor.and_then(|it| it.last),
                definition: definition.map(|plan| Arc::clone(&plan.definition)),
            })
        })
    }

    // Requests.

    /// Declares a calendar with this plan, or removes it if there is none. A request waits while a commit is writing the calendar.
    pub(super) fn request(
        &mut self,
        name: &Arc<str>,
        token: Token,
        plan: Option<Plan>,
        namespaces: &Namespaces,
        link: &mut StoreLink,
    ) {
        let request = CalendarRequest { token, plan };
        self.entry(name).waiting.push_back(request);
        self.take_up(name, namespaces, link);
    }

    /// Carries out waiting requests, unless a commit is writing the calendar.
    fn take_up(&mut self, name: &Arc<str>, namespaces: &Namespaces, link: &mut StoreLink) {
        while let Some(calendar) = self.all.get_mut(name)
            && calendar.writes.is_none()
        {
            let Some(CalendarRequest { token, plan }) = calendar.waiting.pop_front() else {
                if matches!(calendar.state, State::New) {
                    self.remove(name);
                }
                return;
            };
            if link.refuses(token) {
                continue;
            }
            match plan {
                Some(plan) => self.declare(token, name, plan, namespaces, link),
                None => match self.all.get(name).map(|it| &it.state) {
                    None | Some(State::New) => link.answer(token, Answer::NotFound),
                    Some(_) => self.write(token, name, None, Writes::Removal, link),
                },
            }
        }
    }

    fn declare(
        &mut self,
        token: Token,
        name: &Arc<str>,
        plan: Plan,
        namespaces: &Namespaces,
        link: &mut StoreLink,
    ) {
        let namespace = namespace_in(&plan.handler);
        if !namespaces.is_known(namespace) {
            return link.answer(token, Answer::UnknownNamespace(namespace.into()));
        }
        let now = link.now.due();
        let of = &*plan.occurrences;
        let (progress, declared) = match self.all.get(name).map(|it| &it.state) {
            Some(State::There(before, _)) if before.definition == plan.definition => {
                let unchanged = Answer::Declared(Declared::Unchanged);
                return link.answer(token, unchanged);
            }
            Some(State::There(before, progress)) => {
                let (progress, mut cursor) = (*progress, progress.cursor);
                if before.times != plan.times {
                    cursor = cursor.as_of(now, &*before.occurrences);
                    cursor = cursor.moved(now.max(cursor.at), of);
                }
                let progress = self.advance(name, progress, cursor);
                (progress, Declared::Replaced)
            }
            state => {
                let declared = match state {
                    Some(State::Unreadable(..)) => Declared::Replaced,
                    _ => Declared::Created,
                };
                let number = self.draw(name);
                let cursor = Cursor::starting(now, of);
                (number.map(|number| Progress { number, cursor }), declared)
            }
        };
        let Some(progress) = progress else {
            return link.answer(token, Answer::OutOfIds);
        };
        let stored = of.stored(&progress);
        let writes = Writes::Definition(plan, progress, declared);
        self.write(token, name, Some(stored), writes, link);
    }

    /// Writes a caller's change with the next commit.
    fn write(
        &mut self,
        token: Token,
        name: &Arc<str>,
        value: Option<Arc<[u8]>>,
        writes: Writes,
        link: &mut StoreLink,
    ) {
        self.wake_at(name, None);
        self.entry(name).writes = Some(writes);
        let set = Op::Set(setting(name), value);
        link.queue(Op::All(vec![set]), token);
    }

    // Occurrences.

    /// When a calendar is to be decided next, in microseconds since boot.
    pub(super) fn wakes_at(&self, now: Now) -> Option<u64> {
        let (at, _) = self.wakeups.first()?;
        Some(now.boot_at(*at))
    }

    /// Decides all calendars again after the wall clock was set back, since their wakeups may be too far away. Those that wait for a commit are left out.
    pub(super) fn clock_was_set_back(&mut self, now: Now) {
        let waiting = std::mem::take(&mut self.wakeups);
        for (_, name) in waiting {
            if let Some(calendar) = self.all.get_mut(&name) {
                calendar.wakes_at = Some(now.due());
                self.wakeups.insert((now.due(), name));
            }
        }
    }

    /// Files the occurrences that have come.
    pub(super) fn file(&mut self, link: &mut StoreLink) {
        let now = link.now.due();
        while let Some((at, name)) = self.wakeups.first()
            && *at <= now
        {
            let name = Arc::clone(name);
            self.wake_at(&name, None);
            let Some(calendar) = self.all.get_mut(&name) else {
                return;
            };
            let State::There(plan, progress) = &calendar.state else {
                continue;
            };
            let limit = (MAX_BYTES / plan.payload.len().max(1)).clamp(1, MAX);
            let decision = decide(plan, progress.cursor, now, limit);
            if decision.cursor == progress.cursor {
                let later = now.as_millis().saturating_add(1);
                let at = decision.wakes_at.map(|at| at.max(Due::from_millis(later)));
                self.wake_at(&name, at);
                continue;
            }
            let (plan, before) = (plan.clone(), *progress);
            let Some(after) = self.advance(&name, before, decision.cursor) else {
                let why = "there are more than four million calendars, so this one creates no timers: remove some".into();
                link.put_out(Output::UnreadableCalendar(name, why));
                continue;
            };
            let writes = Writes::Occurrences(after, decision.wakes_at);
            self.entry(&name).writes = Some(writes);
            let written = match planted::is(Planted::CursorNotWritten) {
                true => before,
                false => after,
            };
            let filed = (self.partition, &decision.occurrences[..]);
            let op = occurrences(&name, &plan, &written, filed, now);
            link.push(op);
        }
    }

    /// Continues a calendar from this cursor. If that is earlier than the last one, its ids get a new number, since timers with the old ones may still exist.
    fn advance(&mut self, name: &str, before: Progress, cursor: Cursor) -> Option<Progress> {
        let number = match cursor.at < before.cursor.at {
            true => self.draw(name)?,
            false => before.number,
        };
        Some(Progress { number, cursor })
    }

    // The consequences of a commit.

    /// Takes over the changes of a calendar that are now durable.
    pub(super) fn written(
        &mut self,
        ops: &[Op],
        token: Option<Token>,
        namespaces: &Namespaces,
        link: &mut StoreLink,
    ) {
        let Some(name) = name_of(ops) else {
            return;
        };
        let Some(calendar) = self.all.get_mut(&name) else {
            return;
        };
        let mut answer = None;
        match (calendar.writes.take(), &mut calendar.state) {
            (Some(Writes::Occurrences(after, wakes_at)), State::There(_, progress)) => {
                let before = std::mem::replace(progress, after);
                if before.number != after.number {
                    self.release(before.number);
                }
                self.wake_at(&name, wakes_at);
            }
            (Some(Writes::Definition(plan, progress, declared)), _) => {
                let next = plan.occurrences.next_after(progress.cursor.at);
                self.set(&name, State::There(plan, progress));
                self.wake_at(&name, next);
                answer = Some(Answer::Declared(declared));
            }
            (Some(Writes::Removal), _) => {
                // The waiting requests now concern a calendar that does not exist.
                let waiting = std::mem::take(&mut calendar.waiting);
                self.remove(&name);
                if !waiting.is_empty() {
                    self.entry(&name).waiting = waiting;
                }
                answer = Some(Answer::Done);
            }
            (Some(Writes::Occurrences(..)) | None, _) => {}
        }
        if let Some((token, answer)) = token.zip(answer) {
            link.answer(token, answer);
        }
        self.take_up(&name, namespaces, link);
    }

    /// Handles a refused write of a calendar, whose caller has been answered. What to write is decided again.
    pub(super) fn refused(&mut self, ops: &[Op], namespaces: &Namespaces, link: &mut StoreLink) {
        let Some(name) = name_of(ops) else {
            return;
        };
        let Some(calendar) = self.all.get_mut(&name) else {
            return;
        };
        let drawn = match calendar.writes.take() {
            Some(Writes::Occurrences(progress, _) | Writes::Definition(_, progress, _)) => {
                Some(progress.number)
            }
            Some(Writes::Removal) | None => None,
        };
        let is_there = matches!(calendar.state, State::There(..));
        if let Some(drawn) = drawn.filter(|drawn| calendar.number() != Some(*drawn)) {
            self.release(drawn);
        }
        if is_there {
            self.wake_at(&name, Some(link.now.due()));
        }
        self.take_up(&name, namespaces, link);
    }

    /// Answers the waiting requests after the store has failed.
    pub(super) fn failed(&mut self, why: &Arc<str>, link: &mut StoreLink) {
        for calendar in self.all.values_mut() {
            for request in std::mem::take(&mut calendar.waiting) {
                link.answer(request.token, Answer::Failed(Arc::clone(why)));
            }
        }
    }

    // The calendars by their names and times.

    /// Returns the calendar of this name, and adds a new one if there is none.
    fn entry(&mut self, name: &Arc<str>) -> &mut Calendar {
        let entry = self.all.entry(Arc::clone(name));
        entry.or_insert_with(|| Calendar::new(State::New))
    }

    fn set(&mut self, name: &Arc<str>, state: State) {
        let calendar = self.entry(name);
        let before = calendar.number();
        calendar.state = state;
        let number = calendar.number();
        if let Some(before) = before {
            self.numbers.remove(&before);
        }
        self.numbers.extend(number);
    }

    fn remove(&mut self, name: &str) {
        let removed = self.all.remove(name);
        if let Some(number) = removed.and_then(|it| it.number()) {
            self.numbers.remove(&number);
        }
    }

    /// Draws a number that no other calendar has, and preferably none had before: timers filed with a reused number may still exist.
    fn draw(&mut self, name: &str) -> Option<u32> {
        self.drawn += 1;
        let mut hash = Hash::default();
        hash.bytes(name.as_bytes());
        hash.number(self.epoch.cast_signed());
        hash.number(self.drawn);
        // The upper bits are better mixed than the lower ones.
        let first = (hash.finish() >> 42) as u32;
        let mut numbers = (0..NUMBERS).map(|it| (first + it) % NUMBERS);
        let number = numbers.find(|it| !self.numbers.contains(it))?;
        self.numbers.insert(number);
        Some(number)
    }

    fn release(&mut self, number: u32) {
        self.numbers.remove(&number);
    }

    /// Sets when the calendar is decided next.
    fn wake_at(&mut self, name: &Arc<str>, at: Option<Due>) {
        let Some(calendar) = self.all.get_mut(name) else {
            return;
        };
        if let Some(before) = std::mem::replace(&mut calendar.wakes_at, at) {
            self.wakeups.remove(&(before, Arc::clone(name)));
        }
        self.wakeups.extend(at.map(|at| (at, Arc::clone(name))));
    }

    /// The number of calendars, and the number of calendar numbers in use.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        (self.all.len(), self.numbers.len())
    }

    /// Uses up all numbers, as if other calendars had them.
    #[cfg(test)]
    pub(super) fn use_up_numbers(&mut self) {
        self.numbers = (0..NUMBERS).collect();
    }
}

/// The operation that writes occurrences together with the calendar's progress.
fn occurrences(
    name: &str,
    plan: &Plan,
    progress: &Progress,
    (partition, filed): (u8, &[Due]),
    now: Due,
) -> Op {
    let row = |due: &Due| {
        let id = Id::of_occurrence(partition, progress.number, due.second());
        debug_assert!(id.is_some(), "{name:?} has no id for {due:?}");
        let row = Row {
            // Every time that a calendar returns has an id: see `Occurrences::next_after`.
            id: id?,
            due: *due,
            first_due: *due,
            handler: Arc::clone(&plan.handler),
            failures: 0,
            starts: 0,
            key: None,
            payload: Arc::clone(&plan.payload),
            extras: None,
        };
        Some(Op::Insert(row, Bucket::of(*due, now)))
    };
    let mut ops: Vec<_> = filed.iter().filter_map(row).collect();
    let stored = plan.occurrences.stored(progress);
    ops.push(Op::Set(setting(name), Some(stored)));
    Op::All(ops)
}

fn setting(name: &str) -> Arc<str> {
    format!("{SETTINGS}{name}").into()
}

/// The name of the calendar that these operations write, from the last of them, which sets it.
fn name_of(ops: &[Op]) -> Option<Arc<str>> {
    match ops.last() {
        Some(Op::Set(name, _)) => name.strip_prefix(SETTINGS).map(Arc::from),
        _ => None,
    }
}
