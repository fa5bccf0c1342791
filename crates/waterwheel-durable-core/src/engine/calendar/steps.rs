//! What is written of a calendar, and what follows from that?

use std::sync::Arc;

use crate::store::{Bucket, Due, Id, Op, Outcome, Row};

use super::calendars::{State, Writes};
use super::decide::decide;
use super::plan::{Cursor, Plan, Progress};
use crate::engine::planted::{self, Planted};
use crate::engine::{Answer, Engine, Output, Token};

/// The settings that are calendars.
pub const SETTINGS: &str = "calendar/";

/// How much is filed in a step: so many occurrences, and about so many bytes of their payloads.
const MAX: usize = 64;
const MAX_BYTES: usize = 1 << 20;

impl Engine {
    /// When a calendar is to be looked at, in microseconds since boot.
    pub(in crate::engine) fn calendars_turn(&self) -> Option<u64> {
        let (at, _) = self.calendars.first()?;
        Some(self.now.boot_at(*at))
    }

    /// The wall clock was set back. What was waited for may be too far away.
    pub(in crate::engine) fn calendars_set_back(&mut self) {
        self.calendars.look_at_all(self.present());
    }

    /// Files what has come.
    pub(in crate::engine) fn run_calendars(&mut self) {
        let now = self.present();
        while let Some((at, name)) = self.calendars.first()
            && *at <= now
        {
            let name = Arc::clone(name);
            self.calendars.look_at(&name, None);
            let Some(calendar) = self.calendars.get_mut(&name) else {
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
                self.calendars.look_at(&name, at);
                continue;
            }
            let (plan, before) = (plan.clone(), *progress);
            let Some(after) = self.goes_on(&name, before, decision.cursor) else {
                let why = "there are more than four million calendars, so this one creates no timers: remove some".into();
                self.output.push_back(Output::UnreadableCalendar(name, why));
                continue;
            };
            let writes = Writes::Occurrences(after, decision.wakes_at);
            self.calendars.entry(&name).writes = Some(writes);
            let written = match planted::is(Planted::CursorNotWritten) {
                true => before,
                false => after,
            };
            let op = step(&name, &plan, &written, &decision.occurrences, now);
            self.commits.push(op);
        }
    }

    /// A calendar goes on from this cursor. If that is before the last one, its ids are others from now on: timers of the old ones may still be there.
    pub(super) fn goes_on(
        &mut self,
        name: &str,
        before: Progress,
        cursor: Cursor,
    ) -> Option<Progress> {
        let number = match cursor.at < before.cursor.at {
            true => self.calendars.draw(name, self.epoch)?,
            false => before.number,
        };
        Some(Progress { number, cursor })
    }

    /// What was written of a calendar is durable.
    pub(in crate::engine) fn calendar_written(
        &mut self,
        steps: &[Op],
        outcomes: Vec<Outcome>,
        token: Option<Token>,
    ) {
        for (op, outcome) in steps.iter().zip(outcomes) {
            if let (Op::Insert(row, bucket), Outcome::Inserted) = (op, outcome) {
                self.count(&row.handler, |counts| counts.inserted += 1);
                self.place(row, *bucket);
            }
        }
        let Some(name) = name_of(steps) else {
            return;
        };
        let Some(calendar) = self.calendars.get_mut(&name) else {
            return;
        };
        let mut answer = None;
        match (calendar.writes.take(), &mut calendar.state) {
            (Some(Writes::Occurrences(after, wakes_at)), State::There(_, progress)) => {
                let before = std::mem::replace(progress, after);
                if before.number != after.number {
                    self.calendars.release(before.number);
                }
                self.calendars.look_at(&name, wakes_at);
            }
            (Some(Writes::Definition(plan, progress, declared)), _) => {
                let next = plan.occurrences.next_after(progress.cursor.at);
                self.calendars.set(&name, State::There(plan, progress));
                self.calendars.look_at(&name, next);
                answer = Some(Answer::Declared(declared));
            }
            (Some(Writes::Removal), _) => {
                // What waits is asked of a calendar that is not there.
                let waiting = std::mem::take(&mut calendar.waiting);
                self.calendars.remove(&name);
                if !waiting.is_empty() {
                    self.calendars.entry(&name).waiting = waiting;
                }
                answer = Some(Answer::Done);
            }
            (Some(Writes::Occurrences(..)) | None, _) => {}
        }
        if let Some((token, answer)) = token.zip(answer) {
            self.answer(token, answer);
        }
        self.take_up_calendar(&name);
    }

    /// The store has refused what was to be written of a calendar, and its caller knows. It is decided anew what is to be written.
    pub(in crate::engine) fn calendar_refused(&mut self, steps: &[Op]) {
        let Some(name) = name_of(steps) else {
            return;
        };
        let now = self.present();
        let Some(calendar) = self.calendars.get_mut(&name) else {
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
            self.calendars.release(drawn);
        }
        if is_there {
            self.calendars.look_at(&name, Some(now));
        }
        self.take_up_calendar(&name);
    }

    /// The store has failed: nothing more is done for what waits.
    pub(in crate::engine) fn calendars_failed(&mut self, why: &Arc<str>) {
        let waiting: Vec<_> = self.calendars.waiting().collect();
        for request in waiting {
            self.answer(request.token(), Answer::Failed(Arc::clone(why)));
        }
    }
}

/// The occurrences and how far the calendar has come with them, together.
fn step(name: &str, plan: &Plan, progress: &Progress, occurrences: &[Due], now: Due) -> Op {
    let row = |due: &Due| {
        let id = Id::of_occurrence(progress.number, due.second());
        debug_assert!(id.is_some(), "{name:?} has no id for {due:?}");
        let row = Row {
            // Each time that a calendar knows has one: see `Occurrences::next_after`.
            id: id?,
            due: *due,
            handler: Arc::clone(&plan.handler),
            failures: 0,
            starts: 0,
            has_moved: false,
            key: None,
            payload: Arc::clone(&plan.payload),
        };
        Some(Op::Insert(row, Bucket::of(*due, now)))
    };
    let mut steps: Vec<_> = occurrences.iter().filter_map(row).collect();
    let stored = plan.occurrences.stored(progress);
    steps.push(Op::Set(setting(name), Some(stored)));
    Op::All(steps)
}

pub(super) fn setting(name: &str) -> Arc<str> {
    format!("{SETTINGS}{name}").into()
}

/// The calendar that these steps are of: the last one sets it.
fn name_of(steps: &[Op]) -> Option<Arc<str>> {
    match steps.last() {
        Some(Op::Set(name, _)) => name.strip_prefix(SETTINGS).map(Arc::from),
        _ => None,
    }
}
