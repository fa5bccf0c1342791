//! What an answer says, and whether it can be so.

use super::timer::{State, Timer, Wanted};
use super::{Checker, InFlight, NewTimer, Rule, What};
use crate::protocol::{Answer, Named};

impl Checker {
    /// An answer from a commit: what was queued for the store before the request is on disk.
    fn seals(&mut self, sent: &InFlight) {
        self.seal.answered(sent.thread, sent.line);
    }

    pub(super) fn inserted(&mut self, request: u64, is_new: bool, named: Named) {
        let Some(sent) = self.in_flight.remove(&request) else {
            return self.breaks(Rule::Answer, format!("{request} was not asked for"));
        };
        self.seals(&sent);
        let What::Insert(new) = sent.what else {
            return self.breaks(Rule::Answer, format!("{request} was no insert"));
        };
        self.summary.inserts += 1;
        let id = named.id;
        match is_new {
            true => {
                self.summary.created += 1;
                if Timer::rounded_up(new.due) != named.due || new.handler != named.handler {
                    self.breaks(Rule::Answer, format!("{new:?} has the handle {named}"));
                }
                match self.timers.get(&id).map(|timer| timer.insert) {
                    None => self.is_seen(id, &new, true),
                    // It was delivered before the answer was noted, or an "existing" has named it.
                    Some(None) => self.is_from(id, &new),
                    Some(Some(other)) if other == request => {}
                    Some(Some(other)) => self.breaks(
                        Rule::Id,
                        format!("{id:x} was created by {request}, and is {other}'s"),
                    ),
                }
            }
            false => self.exists(&named, &new),
        }
    }

    /// An insert was refused: from now on, no timer is from it.
    pub(super) fn refused(&mut self, request: u64) {
        match self.in_flight.remove(&request) {
            Some(sent) if matches!(sent.what, What::Insert(_)) => {
                self.seals(&sent);
                self.summary.full += 1;
            }
            _ => self.breaks(Rule::Answer, format!("{request} was no insert")),
        }
    }

    /// Whether an insert was done was not answered, and will not be.
    pub(super) fn unknown(&mut self, request: u64) {
        match self.in_flight.remove(&request).map(|sent| sent.what) {
            Some(What::Insert(new)) => drop(self.unanswered.insert(request, new)),
            _ => self.breaks(Rule::Answer, format!("{request} was no insert")),
        }
    }

    /// A timer is seen for the first time.
    pub(super) fn is_seen(&mut self, id: u64, new: &NewTimer, is_its_own: bool) {
        let first = Wanted {
            request: new.request,
            due: new.due,
            sent: new.sent,
            done_by: Some(self.line),
            is_done: true,
        };
        let timer = Timer {
            handler: new.handler.clone(),
            key: new.key.clone(),
            insert: is_its_own.then_some(new.request),
            handle_due: Timer::rounded_up(new.due),
            wanted: vec![first],
            last: None,
            failures: Default::default(),
            cancelled: None,
            may_be_cancelled: false,
            cancels: 0,
            not_found: None,
            may_be_redriven: false,
            was_dead: false,
            redriven: 0,
            copied: None,
        };
        self.timers.insert(id, timer);
        self.claims(id);
        if is_its_own {
            self.is_its_own_id(id, new.request);
        }
    }

    /// A timer that was only named is this insert's.
    pub(super) fn is_from(&mut self, id: u64, new: &NewTimer) {
        let Some(timer) = self.timers.get_mut(&id) else {
            return;
        };
        timer.insert = Some(new.request);
        let is_it = timer.handler == new.handler
            && timer.key == new.key
            && timer.handle_due == Timer::rounded_up(new.due);
        if !is_it {
            self.breaks(
                Rule::Id,
                format!("{id:x} was named, and is another one: {new:?}"),
            );
        }
        self.is_its_own_id(id, new.request);
    }

    /// Two timers never have a key at the same time.
    pub(super) fn claims(&mut self, id: u64) {
        let Some(timer) = self.timers.get(&id) else {
            return;
        };
        let Some(key) = timer.key.clone() else {
            return;
        };
        // It may be over by now: the lines of its life came before the answer to its insert.
        if !timer.has_key() {
            return;
        }
        let name = (timer.handler.clone(), key);
        let Some(other) = self.keys.insert(name, id) else {
            return;
        };
        if other != id && self.timers.get(&other).is_some_and(Timer::has_key) {
            self.breaks(
                Rule::Key,
                format!("{id:x} and {other:x} have one key at the same time"),
            );
        }
    }

    /// An insert was answered with the timer that has its key.
    fn exists(&mut self, named: &Named, new: &NewTimer) {
        let id = named.id;
        if self.over.has(id) {
            return self.is_named_again(id, new.sent);
        }
        if new.key.is_none() || named.handler != new.handler {
            let text = format!("{new:?} cannot exist already as {named}");
            return self.breaks(Rule::Key, text);
        }
        let Some(timer) = self.timers.get(&id) else {
            // Its own insert is not answered yet, or never was. It is durable.
            let other = NewTimer {
                due: named.due * 1_000,
                ..new.clone()
            };
            return self.is_seen(id, &other, false);
        };
        let is_gone_by = |line: Option<u64>| line.is_some_and(|line| line < new.sent);
        let is_settled = timer.has_ended()
            && timer
                .last
                .is_some_and(|last| last.round != self.round && self.is_settled(&last));
        if timer.key != new.key || timer.handle_due != named.due {
            self.breaks(
                Rule::Key,
                format!("{id:x} is another timer than {named} of {new:?}"),
            );
        } else if is_gone_by(timer.cancelled) || is_gone_by(timer.not_found) || is_settled {
            self.breaks(
                Rule::Key,
                format!("{id:x} is named for its key, and was gone"),
            );
        }
    }

    pub(super) fn answered(&mut self, request: u64, answer: Answer) {
        let Some(sent) = self.in_flight.remove(&request) else {
            return self.breaks(Rule::Answer, format!("{request} was not asked for"));
        };
        if answer != Answer::AlreadyFired {
            self.seals(&sent);
        }
        let id = match sent.what {
            What::Insert(_) => {
                return self.breaks(Rule::Answer, format!("{request} was an insert"));
            }
            What::Redrive(id) => return self.redriven(id, answer),
            What::Cancel(id) | What::Reschedule(id) => id,
        };
        let is_cancel = matches!(sent.what, What::Cancel(_));
        if self.over.has(id) {
            return self.is_answered_again(id, sent.line, answer);
        }
        let Some(timer) = self.timers.get_mut(&id) else {
            return self.breaks(Rule::Answer, format!("{id:x} was never inserted"));
        };
        if is_cancel {
            timer.cancels -= 1;
            self.summary.cancels += 1;
        } else {
            self.summary.reschedules += 1;
        }
        match answer {
            Answer::Done => {
                if is_cancel {
                    self.summary.cancelled += 1;
                }
                self.done(id, request, sent.line, is_cancel);
            }
            Answer::AlreadyFired => timer.wanted.retain(|it| it.request != request),
            Answer::NotFound => {
                timer.wanted.retain(|it| it.request != request);
                // Before it was redriven, it was a dead letter.
                if timer.may_be_redriven || sent.line <= timer.redriven {
                    return;
                }
                timer.not_found = Some(self.line);
                if !timer.has_ended() && !timer.may_be_cancelled() {
                    let text = format!("{id:x} is not found, and never ended: {timer:?}");
                    self.breaks(Rule::Lost, text);
                }
            }
        }
    }

    /// A cancel or a reschedule was answered with "done".
    fn done(&mut self, id: u64, request: u64, sent: u64, is_cancel: bool) {
        let (line, round) = (self.line, self.round);
        let Some(timer) = self.timers.get_mut(&id) else {
            return;
        };
        let was_cancelled = timer.cancelled.is_some_and(|line| line < sent);
        // A reschedule may have been done before the delivery, and be answered after it.
        let last = timer.last.filter(|last| is_cancel || last.line < sent);
        let has_ended = timer.has_ended();
        if is_cancel {
            timer.cancelled = Some(line);
        } else {
            // What was done before this one was asked for is over.
            let before = |it: &Wanted| it.done_by.is_some_and(|by| by < sent);
            timer.wanted.retain(|it| !before(it));
            for wanted in &mut timer.wanted {
                if wanted.request == request {
                    wanted.done_by = Some(line);
                    wanted.is_done = true;
                }
            }
        }
        let Some(last) = last.filter(|_| !was_cancelled) else {
            if was_cancelled {
                let text = format!("{id:x} was cancelled, and is cancelled or moved again");
                self.breaks(Rule::Answer, text);
            }
            return;
        };
        // A handler's lines come before what the engine learns of it.
        let is_here = last.round == round;
        if is_here && last.state == State::Begun {
            let text = format!("{id:x} is with its handler, and was cancelled or moved: {last:?}");
            self.breaks(Rule::Answer, text);
        } else if has_ended && (is_here || self.is_settled(&last)) {
            let text = format!("{id:x} had ended, and was cancelled or moved: {last:?}");
            self.breaks(Rule::Answer, text);
        }
    }

    fn redriven(&mut self, id: u64, answer: Answer) {
        self.summary.redrives += 1;
        let line = self.line;
        let Some(timer) = self.timers.get_mut(&id) else {
            return self.breaks(Rule::Answer, format!("{id:x} was never inserted"));
        };
        // Without the mark, it was delivered since.
        if answer == Answer::Done && timer.may_be_redriven {
            match timer.last {
                Some(last) if last.state == State::Dead => {
                    timer.may_be_redriven = false;
                    timer.redriven = line;
                    timer.last = None;
                }
                last => {
                    let text = format!("{id:x} was no dead letter, and is redriven: {last:?}");
                    self.breaks(Rule::Answer, text);
                }
            }
        }
    }
}
