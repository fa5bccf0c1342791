//! The knowledge of a service that goes on from a copy of its file.
//!
//! A copy is what some commit has left, after the copy was begun and before it was made. Whatever was certain when it was begun is in it, and what was announced
//! after it was made is not. In between, nothing is certain but what was announced: as if the child had been killed there, with no answer to any of it. So that is
//! what a checker of its own is handed, from the line at which the copy was begun. It takes the place of the other one when the copy is restored.

use std::collections::HashMap;

use super::timer::State;
use super::{Checker, Copied, Rule, Undone};
use crate::protocol::{Answer, Begin, Line};

impl Copied {
    /// Reads a line after the one at which the copy was begun.
    fn note(&mut self, line: &Line) {
        let past = &mut self.past;
        match line {
            Line::Begin(Begin { id, .. }) | Line::End { id, .. } => {
                let next = || past.next_attempt(*id);
                self.delivered.entry(*id).or_insert_with(next);
                past.feed(line.clone());
            }
            Line::Asked { .. } => past.feed(line.clone()),
            // An answer names the timer: it may be moved from now on. It is in the copy or not.
            Line::Answered { request, answer } => {
                let sent = past.in_flight.get(request).cloned();
                let insert = sent.and_then(|sent| sent.insert(*request));
                match (insert, answer) {
                    (Some(insert), Answer::Created(timer)) => past.is_of(timer.id, &insert),
                    (Some(mut insert), Answer::Existing(timer)) => {
                        insert.new.due = timer.due * 1_000;
                        if !past.timers.contains_key(&timer.id) {
                            past.is_seen(timer.id, &insert, false);
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

impl Checker {
    /// The parent begins a copy. What was read so far is in it.
    pub(super) fn copies(&mut self, number: u64) {
        // It knows of no other copies.
        let others = std::mem::take(&mut self.copies);
        let copied = Copied {
            past: self.clone(),
            is_made: false,
            known: self.timers.keys().copied().collect(),
            delivered: HashMap::new(),
        };
        self.copies = others;
        self.copies.insert(number, copied);
    }

    /// A copy was made. What is announced from now on is not in it.
    pub(super) fn copied(&mut self, number: u64) {
        match self.copies.get_mut(&number) {
            Some(copied) if !copied.is_made => copied.is_made = true,
            _ => self.breaks(Rule::Other, format!("copy {number} was not begun")),
        }
    }

    /// Before each line: it may be part of the copies that are being made.
    pub(super) fn note_for_copies(&mut self, line: &Line) {
        for copied in self.copies.values_mut().filter(|it| !it.is_made) {
            copied.note(line);
        }
    }

    /// A copy is in the place of the file. The other copies are gone.
    pub(super) fn restored(&mut self, number: u64) {
        let Some(copied) = self.copies.remove(&number).filter(|it| it.is_made) else {
            return self.breaks(Rule::Other, format!("copy {number} was not made"));
        };
        let Copied {
            mut past,
            known,
            delivered,
            ..
        } = copied;
        past.line = self.line;
        let before = past.summary.in_flight;
        past.ends_round(false);
        // As at a kill, some of them come again.
        self.summary.in_flight += past.summary.in_flight - before;
        for (id, timer) in &mut past.timers {
            // It was first seen while the copy was made. Its insert may have been later than that.
            timer.may_be_cancelled |= !known.contains(id);
        }
        for (id, (from, may_be_dead)) in delivered {
            let Some(timer) = past.timers.get_mut(&id) else {
                continue;
            };
            let to = timer.last.map_or(0, |last| match last.state {
                State::Failed => last.attempt + 1,
                State::Begun | State::Well | State::Dead => last.attempt,
            });
            timer.copied = Some((from, to));
            // It was redriven meanwhile: it may be a dead letter still, or delivered and gone.
            timer.may_be_cancelled |= may_be_dead;
        }
        self.summary.undone = self.undone(&past);
        past.earlier = std::mem::take(&mut self.earlier);
        for (&id, timer) in &self.timers {
            if let Some(request) = timer.insert {
                past.earlier.requests.insert(id, request);
                past.earlier.ids.insert(request, id);
            }
        }
        past.round = self.round;
        past.summary = std::mem::take(&mut self.summary);
        past.broken = std::mem::take(&mut self.broken);
        *self = past;
    }

    /// The lowest attempt that a timer may have next, by what is certain, and whether it may be a dead letter that was redriven.
    fn next_attempt(&self, id: u64) -> (u32, bool) {
        let Some(timer) = self.timers.get(&id) else {
            return (1, false);
        };
        let attempt = match timer.last {
            Some(last) if !timer.may_be_redriven => match last.state {
                State::Failed if self.is_settled(&last) => last.attempt + 1,
                _ => last.attempt,
            },
            _ => 1,
        };
        (attempt, timer.may_be_redriven)
    }

    /// The work that is undone once this is the past again.
    fn undone(&self, past: &Checker) -> Undone {
        let mut undone = self.summary.undone;
        for (id, timer) in &self.timers {
            let is_over = timer.cancelled.is_some() || timer.has_ended();
            match past.timers.get(id) {
                Some(then) => undone.again += usize::from(is_over && then.is_owed()),
                None => {
                    let may_be_there = |request| past.unanswered.contains_key(&request);
                    undone.gone += usize::from(!timer.insert.is_some_and(may_be_there));
                }
            }
        }
        undone
    }

    /// An id is one timer's, whatever was restored.
    pub(super) fn is_its_own_id(&mut self, id: u64, request: u64) {
        let was = self.earlier.requests.get(&id);
        if let Some(was) = was.filter(|was| **was != request) {
            let text = format!("{id:x} was the id of {was} before a restore, and is {request}'s");
            return self.breaks(Rule::Id, text);
        }
        let had = self.earlier.ids.get(&request);
        if let Some(had) = had.filter(|had| **had != id) {
            let text = format!("{request} had the id {had:x} before a restore, and has {id:x}");
            self.breaks(Rule::Id, text);
        }
    }
}
