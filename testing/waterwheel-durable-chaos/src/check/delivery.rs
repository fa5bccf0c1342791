//! What a handler has seen, and whether it can be so.

use super::timer::{Last, ON_ITS_WAY_MICROS, State, Timer};
use super::{Checker, Rule, What};
use crate::protocol::{How, Line, RETRY_DELAYS_MILLIS, WORKERS};

/// An occurrence that is later than this may be from before the clock was moved, or from before a misfire. The engine takes a minute for a misfire.
const IN_TIME_MICROS: i64 = 30_000_000;
/// The engine's time when a delivery ends is up to a millisecond old, and is rounded down to one.
const RETRY_TOLERANCE_MICROS: i64 = 2_000;

impl Checker {
    pub(super) fn begins(&mut self, line: &Line) {
        let Line::Begin {
            at,
            id,
            insert,
            attempt,
            wall,
            due,
            handler,
            key,
        } = line
        else {
            return;
        };
        let (id, attempt) = (*id, *attempt);
        self.summary.deliveries += 1;
        self.running += 1;
        self.is_not_paused(id, handler, *at);
        if self.over.has(id) {
            return self.is_delivered_again(id);
        }
        self.is_known(id, *insert);
        let Some(timer) = self.timers.get(&id) else {
            return self.breaks(
                Rule::Id,
                format!("{id:x} was delivered, and never inserted"),
            );
        };
        let has_its_key = timer.key == *key || timer.was_dead && key.is_none();
        if timer.insert != Some(*insert) || timer.handler != *handler || !has_its_key {
            let text = format!("{id:x} was delivered as another one, {line}: {timer:?}");
            self.breaks(Rule::Id, text);
        }
        self.is_not_early(id, attempt, *wall, *due, *at);
        self.is_not_twice(id, attempt);
        let round = self.round;
        let line = self.line;
        if let Some(timer) = self.timers.get_mut(&id) {
            // What a cancel before a kill may have done, it has not.
            timer.may_be_cancelled = false;
            timer.may_be_redriven = false;
            timer.copied = None;
            timer.last = Some(Last {
                state: State::Begun,
                attempt,
                round,
                begun_at: *at,
                line,
                thread: 0,
                wall: *wall,
            });
        }
        self.claims(id);
    }

    /// A timer that is delivered was inserted, even if that was never answered.
    fn is_known(&mut self, id: u64, insert: u64) {
        let new = match self.in_flight.get(&insert).map(|it| &it.what) {
            Some(What::Insert(new)) => Some(new),
            _ => self.unanswered.get(&insert),
        };
        let Some(new) = new.cloned() else {
            return;
        };
        self.unanswered.remove(&insert);
        match self.timers.get(&id).map(|timer| timer.insert) {
            None => self.is_seen(id, &new, true),
            Some(None) => self.is_from(id, &new),
            Some(Some(_)) => {}
        }
    }

    fn is_not_early(&mut self, id: u64, attempt: u32, wall: i64, due: i64, at: u64) {
        let Some(timer) = self.timers.get(&id) else {
            return;
        };
        // In milliseconds, as a delivery says it.
        let reported = due.div_euclid(1_000);
        let last = timer.last.filter(|last| last.state == State::Failed);
        // Since the failure that this attempt follows, if it is not the first one.
        let since = match attempt as usize {
            0..2 => 0,
            number => timer.failures.get(number - 2).copied().unwrap_or(0),
        };
        let wanted = timer.wanted.iter();
        let wanted = wanted.filter(|it| it.done_by.is_none_or(|line| line > since));
        let is_wanted = wanted
            .clone()
            .any(|it| Timer::rounded_up(it.due) == reported);
        // Whether the due time may be another than what was asked for: after a failure or a redrive, unless it was moved since.
        let was_moved = wanted.clone().any(|it| it.is_done && it.sent > since);
        let is_own = attempt > 1 && !was_moved || timer.was_dead;
        let is_before_all = wanted.clone().all(|it| wall < it.due);
        let tolerated = match last {
            Some(last) if last.attempt < attempt && self.was_still_since(&last) => {
                let delay = RETRY_DELAYS_MILLIS.get(last.attempt as usize - 1);
                let delay = delay.copied().unwrap_or(0) * 1_000;
                last.wall + delay - RETRY_TOLERANCE_MICROS
            }
            _ => i64::MIN,
        };
        let timer = format!("{timer:?}");
        if wall < due {
            match self.could_show(due, at) {
                true => self.summary.on_their_way += 1,
                false => self.breaks(
                    Rule::Early,
                    format!("{id:x} {} us before {due}: {timer}", due - wall),
                ),
            }
        } else if is_wanted {
        } else if !is_own && is_before_all {
            self.breaks(Rule::Early, format!("{id:x} by all due times: {timer}"));
        } else if !is_own {
            let text = format!("{id:x} was not due at {due}, but as asked for last: {timer}");
            self.breaks(Rule::Early, text);
        } else if wall < tolerated {
            let text = format!("{id:x} {} us before its retry: {timer}", tolerated - wall);
            self.breaks(Rule::Early, text);
        }
    }

    /// Whether the wall clock was not moved since a delivery began. The engine's time may be a moment older than that.
    fn was_still_since(&self, last: &Last) -> bool {
        self.summary.clock_moves == 0
            || last.round == self.round
                && self.moved_at.is_some_and(|at| at + 10_000 < last.begun_at)
    }

    /// Whether the wall clock may have shown this time as the handler was about to be called, before it was set back and the handler has read it. It is looked at just before
    /// that, so each thread of the runtime may have one such delivery at a move of the clock.
    pub(super) fn could_show(&mut self, due: i64, at: u64) -> bool {
        self.moves
            .retain(|it| at.saturating_sub(it.done_at.unwrap_or(at)) < ON_ITS_WAY_MICROS);
        let excuse = self.moves.iter_mut().find(|it| {
            let until = it.done_at.unwrap_or(at).saturating_sub(it.at);
            it.excused < WORKERS && due <= it.wall.saturating_add_unsigned(until)
        });
        excuse.map(|it| it.excused += 1).is_some()
    }

    fn is_not_twice(&mut self, id: u64, attempt: u32) {
        let Some(timer) = self.timers.get(&id) else {
            return;
        };
        if timer.cancelled.is_some() {
            return self.breaks(Rule::AfterDone, format!("{id:x} was delivered: {timer:?}"));
        }
        if timer.not_found.is_some() {
            let text = format!("{id:x} was not found, and is delivered: {timer:?}");
            return self.breaks(Rule::Twice, text);
        }
        let Some(last) = timer.last else {
            if attempt != 1 {
                let text = format!("{id:x} begins with attempt {attempt}: {timer:?}");
                self.breaks(Rule::Attempt, text);
            }
            return;
        };
        if timer.may_be_redriven && attempt == 1 {
            return;
        }
        let may_begin = |(from, to): (u32, u32)| (from..=to).contains(&attempt);
        if timer.copied.is_some_and(may_begin) {
            if attempt <= last.attempt {
                self.kills.entry(last.round).or_default().1 += 1;
                self.summary.duplicates += 1;
            }
            return;
        }
        let in_flight = last.round != self.round && !self.is_settled(&last);
        let is_again = in_flight && attempt == last.attempt;
        let is_next = last.state == State::Failed && attempt == last.attempt + 1;
        if last.state == State::Begun && last.round == self.round {
            let text = format!("{id:x} is with its handler already: {timer:?}");
            self.breaks(Rule::Twice, text);
        } else if is_again || last.state == State::Begun && attempt == last.attempt {
            self.kills.entry(last.round).or_default().1 += 1;
            self.summary.duplicates += 1;
        } else if !is_next {
            let rule = match last.state {
                State::Failed | State::Begun => Rule::Attempt,
                State::Well | State::Dead => Rule::Twice,
            };
            let text = format!("{id:x} is delivered, in attempt {attempt}: {timer:?}");
            self.breaks(rule, text);
        }
    }

    pub(super) fn ended(&mut self, thread: usize, id: u64, attempt: u32, how: How, wall: i64) {
        self.running = self.running.saturating_sub(1);
        self.ends.push((self.line, thread));
        let (line, round) = (self.line, self.round);
        let Some(timer) = self.timers.get_mut(&id) else {
            return;
        };
        let begun = timer.last.filter(|last| {
            last.state == State::Begun && last.round == round && last.attempt == attempt
        });
        let Some(begun) = begun else {
            let text = format!("{id:x} ends and did not begin: {timer:?}");
            return self.breaks(Rule::Other, text);
        };
        let state = match how {
            How::Well => State::Well,
            How::Dead => State::Dead,
            How::Failed | How::Dropped if attempt as usize > RETRY_DELAYS_MILLIS.len() => {
                State::Dead
            }
            How::Failed | How::Dropped => State::Failed,
        };
        timer.last = Some(Last {
            state,
            line,
            thread,
            wall,
            ..begun
        });
        if state == State::Failed {
            timer.failures[attempt as usize - 1] = line;
        }
        if state == State::Dead {
            // Its key is free, and stays so.
            timer.was_dead = true;
        }
    }

    pub(super) fn is_not_paused(&mut self, id: u64, handler: &str, at: u64) {
        if self.service.is_paused(handler, at) {
            let text = format!("{id:x} of {handler} was delivered while that is paused");
            self.breaks(Rule::Other, text);
        }
    }

    /// An occurrence is delivered once, but for one that was in flight at a kill, and not before its time.
    pub(super) fn occurred(&mut self, at: u64, wall: i64, time: i64) {
        self.summary.occurrences += 1;
        if wall < time && !self.could_show(time, at) {
            let text = format!("the occurrence of {time} came {} us before", time - wall);
            self.breaks(Rule::Early, text);
        }
        let before = self.service.occurred.insert(time, self.round);
        if before == Some(self.round) {
            let text = format!("the occurrence of {time} was delivered before");
            self.breaks(Rule::Twice, text);
        }
        // A line may have been on its way while the clock was moved: its wall time is from before.
        let is_since = self.moved_at.is_some_and(|moved| at >= moved);
        if is_since && (0..IN_TIME_MICROS).contains(&(wall - time)) {
            let (first, last) = self.service.calm.unwrap_or((time, time));
            self.service.calm = Some((first.min(time), last.max(time)));
        }
    }

    /// The end: no occurrence is missing.
    pub(super) fn all_occurred(&mut self) {
        for time in self.service.missing() {
            let text = format!("the occurrence of {time} did not come");
            self.breaks(Rule::Lost, text);
        }
    }
}
