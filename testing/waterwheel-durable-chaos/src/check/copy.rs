//! The knowledge of a service that goes on from a copy of its file.
//!
//! A copy is the state after some commit between the start of the copy and its end. It contains everything that was certain when it began, and nothing that was
//! announced after it was made. In between, nothing is certain but what was announced, as if the child had been killed there with no answer to any of it. A
//! separate checker is fed exactly that, from the line at which the copy began. It replaces the other checker when the copy is restored.

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
            // An answer names the timer, which may be moved from now on. The copy may contain it or not.
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
    /// Notes that the parent begins a copy, which contains everything that was read so far.
    pub(super) fn copies(&mut self, number: u64) {
        // The copy's checker knows of no other copies.
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

    /// Notes that a copy was made: nothing that is announced from now on is in it.
    pub(super) fn copied(&mut self, number: u64) {
        match self.copies.get_mut(&number) {
            Some(copied) if !copied.is_made => copied.is_made = true,
            _ => self.breaks(Rule::Other, format!("copy {number} was not begun")),
        }
    }

    /// Feeds a line to the copies in progress, which may contain it, before the line is checked.
    pub(super) fn note_for_copies(&mut self, line: &Line) {
        for copied in self.copies.values_mut().filter(|it| !it.is_made) {
            copied.note(line);
        }
    }

    /// Replaces the state by that of a copy, which has replaced the file. The other copies are gone.
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
        // As after a kill, some of them are delivered again.
        self.summary.in_flight += past.summary.in_flight - before;
        for (id, timer) in &mut past.timers {
            // The timer was first seen while the copy was made. It may have been inserted too late for the copy.
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
            // The timer was redriven meanwhile: it may still be a dead letter, or may be delivered and gone.
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

    /// Returns the lowest attempt that a timer may certainly have next, and whether it may be a redriven dead letter.
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

    /// Counts the work that is undone by going back to this past.
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

    /// Checks that an id belongs to one timer, also across restores.
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
