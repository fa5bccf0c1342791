//! What becomes of a declaration, a removal, and of what the store has at the opening?

use std::sync::Arc;

use crate::store::{Due, Op};

use super::calendars::{CalendarRequest, Declared, State, Writes};
use super::plan::{Cursor, Plan, Progress};
use super::steps::setting;
use crate::engine::{Answer, Engine, Output, Token, namespace_in};

/// What the store has of a calendar.
#[derive(Debug)]
pub struct Stored {
    /// The name.
    pub name: Arc<str>,
    /// What was read, or why it could not be, and the number if that could.
    pub read: Result<(Plan, Progress), (Option<u32>, Arc<str>)>,
}

/// A calendar, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The name.
    pub name: Arc<str>,
    /// The definition, or why it cannot be read.
    pub definition: Result<Arc<str>, Arc<str>>,
    /// The next occurrence. `None` if there is none any more.
    pub next: Option<Due>,
    /// The last one that was filed.
    pub last: Option<Due>,
}

impl Engine {
    /// Takes over what the store has of calendars, as it is opened.
    pub fn restore_calendars(&mut self, stored: impl IntoIterator<Item = Stored>) {
        let now = self.present();
        for Stored { name, read } in stored {
            match read {
                Ok((plan, progress)) => {
                    self.calendars.set(&name, State::There(plan, progress));
                    self.calendars.look_at(&name, Some(now));
                }
                Err((number, why)) => {
                    let unreadable = State::Unreadable(number, Arc::clone(&why));
                    self.calendars.set(&name, unreadable);
                    self.output.push_back(Output::UnreadableCalendar(name, why));
                }
            }
        }
    }

    /// Declares a calendar: [`Declared`](Answer::Declared). Declared again with the same definition, it stays as it is.
    pub fn declare_calendar(&mut self, token: Token, name: &Arc<str>, plan: Plan) {
        self.request_calendar(name, CalendarRequest::Declare(token, plan));
    }

    /// Removes a calendar: [`Done`](Answer::Done) or [`NotFound`](Answer::NotFound). What it has filed stays.
    pub fn remove_calendar(&mut self, token: Token, name: &Arc<str>) {
        self.request_calendar(name, CalendarRequest::Remove(token));
    }

    /// All calendars, in order of their names.
    pub fn calendars(&self) -> impl Iterator<Item = Info> {
        self.calendars.all().filter_map(|(name, calendar)| {
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

    fn request_calendar(&mut self, name: &Arc<str>, request: CalendarRequest) {
        if self.refuses(request.token()) {
            return;
        }
        let calendar = self.calendars.entry(name);
        calendar.waiting.push_back(request);
        self.take_up_calendar(name);
        self.commit();
    }

    /// Does what waits, unless a commit has the calendar.
    pub(super) fn take_up_calendar(&mut self, name: &Arc<str>) {
        while let Some(calendar) = self.calendars.get_mut(name)
            && calendar.writes.is_none()
        {
            let Some(request) = calendar.waiting.pop_front() else {
                if matches!(calendar.state, State::New) {
                    self.calendars.remove(name);
                }
                return;
            };
            if self.refuses(request.token()) {
                continue;
            }
            match request {
                CalendarRequest::Declare(token, plan) => self.declare(token, name, plan),
                CalendarRequest::Remove(token) => self.remove(token, name),
            }
        }
    }

    fn declare(&mut self, token: Token, name: &Arc<str>, plan: Plan) {
        let namespace = namespace_in(&plan.handler);
        if self.namespace(namespace).is_none_or(|it| !it.is_known) {
            return self.answer(token, Answer::UnknownNamespace(namespace.into()));
        }
        let now = self.present();
        let of = &*plan.occurrences;
        let (progress, declared) = match self.calendars.get(name).map(|it| &it.state) {
            Some(State::There(before, _)) if before.definition == plan.definition => {
                let unchanged = Answer::Declared(Declared::Unchanged);
                return self.answer(token, unchanged);
            }
            Some(State::There(before, progress)) => {
                let (progress, mut cursor) = (*progress, progress.cursor);
                if before.times != plan.times {
                    cursor = cursor.as_of(now, &*before.occurrences);
                    cursor = cursor.moved(now.max(cursor.at), of);
                }
                let progress = self.goes_on(name, progress, cursor);
                (progress, Declared::Replaced)
            }
            state => {
                let declared = match state {
                    Some(State::Unreadable(..)) => Declared::Replaced,
                    _ => Declared::Created,
                };
                let number = self.calendars.draw(name, self.epoch);
                let cursor = Cursor::starting(now, of);
                (number.map(|number| Progress { number, cursor }), declared)
            }
        };
        let Some(progress) = progress else {
            return self.answer(token, Answer::OutOfIds);
        };
        let stored = of.stored(&progress);
        self.write_calendar(
            token,
            name,
            Some(stored),
            Writes::Definition(plan, progress, declared),
        );
    }

    fn remove(&mut self, token: Token, name: &Arc<str>) {
        let state = self.calendars.get(name).map(|it| &it.state);
        match state {
            None | Some(State::New) => self.answer(token, Answer::NotFound),
            Some(_) => self.write_calendar(token, name, None, Writes::Removal),
        }
    }

    fn write_calendar(
        &mut self,
        token: Token,
        name: &Arc<str>,
        value: Option<Arc<[u8]>>,
        writes: Writes,
    ) {
        self.calendars.look_at(name, None);
        self.calendars.entry(name).writes = Some(writes);
        let set = Op::Set(setting(name), value);
        self.commits.request(Op::All(vec![set]), token.into());
    }
}
