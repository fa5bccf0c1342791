//! Checks whether an answer is possible.

use super::timer::{At, State, Timer, Wanted, rounded_up};
use super::{Checker, Insert, Rule};
use crate::protocol::{Answer, Named, NewTimer, Request};

impl Checker {
    pub(super) fn answered(&mut self, request: u64, answer: Answer) {
        let Some(sent) = self.in_flight.remove(&request) else {
            return self.breaks(Rule::Answer, format!("{request} was not asked for"));
        };
        // An answer that comes from a commit of its own: everything queued for the store before the request is on disk. A cancel or a reschedule
        // may be answered by the commit of an earlier request for the same timer.
        let is_of_timer = matches!(
            sent.what,
            Request::Cancel { .. } | Request::Reschedule { .. }
        );
        let is_from_commit =
            !is_of_timer && !matches!(answer, Answer::ShuttingDown | Answer::Unknown);
        if is_from_commit {
            self.seal.answered(sent.thread, sent.line);
        }
        let line = sent.line;
        match (&sent.what, answer) {
            (Request::Insert(_), answer) => {
                if let Some(insert) = sent.insert(request) {
                    self.inserted(insert, answer);
                }
            }
            (Request::Redrive { id }, Answer::Done) => self.redriven(*id, true),
            (Request::Redrive { id }, Answer::NotFound) => self.redriven(*id, false),
            (
                Request::Cancel { id } | Request::Reschedule { id, .. },
                answer @ (Answer::Done | Answer::AlreadyFired | Answer::NotFound),
            ) => {
                let is_cancel = matches!(sent.what, Request::Cancel { .. });
                self.moved(*id, request, line, is_cancel, &answer);
            }
            (what, answer) => {
                let text = format!("{what:?} is answered with {answer:?}");
                self.breaks(Rule::Answer, text);
            }
        }
    }

    fn inserted(&mut self, insert: Insert, answer: Answer) {
        match answer {
            Answer::Created(named) => {
                self.summary.inserts += 1;
                self.summary.created += 1;
                let new = &insert.new;
                if rounded_up(new.due) != named.due || new.handler != named.handler {
                    self.breaks(Rule::Answer, format!("{insert:?} has the handle {named:?}"));
                }
                // The timer may have been delivered before the answer was noted.
                self.is_of(named.id, &insert);
                let timer = self.timers.get(&named.id).and_then(|it| it.insert);
                if timer != Some(insert.request) {
                    let text = format!("{insert:?} has created {named:?}, which is {timer:?}'s");
                    self.breaks(Rule::Id, text);
                }
            }
            Answer::Existing(named) => {
                self.summary.inserts += 1;
                self.exists(&named, &insert);
            }
            // No timer may come from this insert from now on.
            Answer::Full => self.summary.full += 1,
            Answer::ShuttingDown => {}
            // No answer will say whether the insert was done.
            Answer::Unknown => drop(self.unanswered.insert(insert.request, insert)),
            answer => {
                let text = format!("{insert:?} is answered with {answer:?}");
                self.breaks(Rule::Answer, text);
            }
        }
    }

    /// Assigns a timer to this insert, unless it is known to belong to another one.
    pub(super) fn is_of(&mut self, id: u64, insert: &Insert) {
        match self.timers.get_mut(&id) {
            None => self.is_seen(id, insert, true),
            // An "existing" answer has named the timer.
            Some(timer) if timer.insert.is_none() => {
                timer.insert = Some(insert.request);
                let new = &insert.new;
                let is_it = timer.handler == new.handler
                    && timer.key == new.key
                    && timer.handle_due == rounded_up(new.due);
                if !is_it {
                    let text = format!("{id:x} was named, and is another one: {insert:?}");
                    self.breaks(Rule::Id, text);
                }
                self.is_its_own_id(id, insert.request);
            }
            Some(_) => {}
        }
    }

    /// Notes a timer that is seen for the first time.
    pub(super) fn is_seen(&mut self, id: u64, insert: &Insert, is_its_own: bool) {
        let new = &insert.new;
        let first = Wanted {
            request: insert.request,
            due: new.due,
            sent: insert.sent,
            done_by: Some(self.line),
            is_done: true,
        };
        let timer = Timer {
            handler: new.handler.clone(),
            key: new.key.clone(),
            insert: is_its_own.then_some(insert.request),
            handle_due: rounded_up(new.due),
            wanted: vec![first],
            ..Timer::default()
        };
        self.timers.insert(id, timer);
        self.claims(id);
        if is_its_own {
            self.is_its_own_id(id, insert.request);
        }
    }

    /// Checks that no two timers have a key at the same time.
    pub(super) fn claims(&mut self, id: u64) {
        // The timer may be over by now: the lines of its life came before the answer to its insert.
        let timer = self.timers.get(&id).filter(|it| it.has_key());
        let name = timer.and_then(|it| Some((it.handler.clone(), it.key.clone()?)));
        let other = name.and_then(|name| self.keys.insert(name, id));
        if let Some(other) = other.filter(|it| *it != id)
            && self.timers.get(&other).is_some_and(Timer::has_key)
        {
            let text = format!("{id:x} and {other:x} have one key at the same time");
            self.breaks(Rule::Key, text);
        }
    }

    /// Notes that an insert was answered with the timer that has its key.
    fn exists(&mut self, named: &Named, insert: &Insert) {
        let (id, new) = (named.id, &insert.new);
        let is_gone_by = |line: Option<At>| line.is_some_and(|line| line < insert.sent);
        let is_possible = match self.timers.get(&id) {
            _ if self.over.has(id) => insert.sent < self.over.until,
            _ if new.key.is_none() || named.handler != new.handler => false,
            // That timer's own insert has no answer yet, or never got one. The timer is durable.
            None => {
                let new = NewTimer {
                    due: named.due * 1_000,
                    ..new.clone()
                };
                self.is_seen(id, &Insert { new, ..*insert }, false);
                true
            }
            Some(timer) => {
                let last = timer.last.filter(|_| timer.has_ended());
                let is_settled =
                    last.is_some_and(|it| it.round != self.round && self.is_settled(&it));
                let is_gone = is_gone_by(timer.cancelled) || is_gone_by(timer.not_found);
                timer.key == new.key && timer.handle_due == named.due && !is_gone && !is_settled
            }
        };
        if !is_possible {
            let timer = self.timers.get(&id);
            let text = format!("{named:?} is another timer, or gone: {insert:?}, {timer:?}");
            self.breaks(Rule::Key, text);
        }
    }

    /// Checks the answer to a cancel or a reschedule.
    fn moved(&mut self, id: u64, request: u64, sent: At, is_cancel: bool, answer: &Answer) {
        if self.over.has(id) {
            if *answer != Answer::NotFound && sent >= self.over.until {
                let text = format!("{id:x} was settled or cancelled, and the answer is {answer:?}");
                self.breaks(Rule::Answer, text);
            }
            return;
        }
        let Some(timer) = self.timers.get_mut(&id) else {
            return self.breaks(Rule::Answer, format!("{id:x} was never inserted"));
        };
        match is_cancel {
            true => {
                timer.cancels -= 1;
                self.summary.cancels += 1;
            }
            false => self.summary.reschedules += 1,
        }
        if *answer == Answer::Done {
            self.summary.cancelled += u64::from(is_cancel);
            return self.done(id, request, sent, is_cancel);
        }
        timer.wanted.retain(|it| it.request != request);
        // The timer was a dead letter before it was redriven.
        let was_dead = timer.may_be_redriven || sent <= timer.redriven;
        if *answer == Answer::NotFound && !was_dead {
            timer.not_found = Some(self.line);
            if !timer.has_ended() && !timer.may_be_cancelled() {
                let text = format!("{id:x} is not found, and never ended: {timer:?}");
                self.breaks(Rule::Lost, text);
            }
        }
    }

    /// Notes that a cancel or a reschedule was answered with "done".
    fn done(&mut self, id: u64, request: u64, sent: At, is_cancel: bool) {
        let (line, round) = (self.line, self.round);
        let Some(timer) = self.timers.get_mut(&id) else {
            return;
        };
        let was_cancelled = timer.cancelled.is_some_and(|line| line < sent);
        // A reschedule may have been done before the delivery and answered after it.
        let last = timer.last.filter(|last| is_cancel || last.line < sent);
        if is_cancel {
            timer.cancelled = Some(line);
        } else {
            // Due times that were replaced before this request was sent no longer apply.
            timer
                .wanted
                .retain(|it| it.done_by.is_none_or(|by| by >= sent));
            for wanted in timer.wanted.iter_mut().filter(|it| it.request == request) {
                wanted.done_by = Some(line);
                wanted.is_done = true;
            }
        }
        let timer = timer.clone();
        let is_over = last.is_some_and(|last| {
            // A handler's lines come before the engine learns of them.
            let is_here = last.round == round;
            is_here && last.state == State::Begun
                || timer.has_ended() && (is_here || self.is_settled(&last))
        });
        if was_cancelled || is_over {
            let text =
                format!("{id:x} was over or with its handler, and is {sent} done: {timer:?}");
            self.breaks(Rule::Answer, text);
        }
    }

    fn redriven(&mut self, id: u64, is_done: bool) {
        self.summary.redrives += 1;
        let line = self.line;
        let Some(timer) = self.timers.get_mut(&id) else {
            return self.breaks(Rule::Answer, format!("{id:x} was never inserted"));
        };
        // Without the mark, the timer was delivered since.
        if !is_done || !timer.may_be_redriven {
            return;
        }
        if timer.last.is_some_and(|it| it.state == State::Dead) {
            timer.may_be_redriven = false;
            timer.redriven = line;
            timer.last = None;
        } else {
            let text = format!("{id:x} was no dead letter, and is redriven: {timer:?}");
            self.breaks(Rule::Answer, text);
        }
    }
}
