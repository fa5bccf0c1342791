//! Checks whether a delivery is possible.

use super::timer::{Last, ON_ITS_WAY_MICROS, State, Timer, rounded_up};
use super::{Checker, Rule};
use crate::protocol::{Begin, How, RETRY_DELAYS_MILLIS, WORKERS};

/// An occurrence that is later than this may come from before a move of the clock or a misfire. The engine's own threshold for a misfire is a minute.
const IN_TIME_MICROS: i64 = 30_000_000;
/// The tolerance for retries: the engine's time when a delivery ends is up to a millisecond old, and is rounded down to one.
const RETRY_TOLERANCE_MICROS: i64 = 2_000;

impl Checker {
    pub(super) fn begins(&mut self, begin: &Begin) {
        let Begin { id, attempt, .. } = *begin;
        self.summary.deliveries += 1;
        self.running += 1;
        if self.service.is_paused(&begin.handler, begin.at) {
            self.breaks(Rule::Other, format!("{begin:?} while that is paused"));
        }
        if self.over.has(id) {
            let text = format!("{id:x} was settled or cancelled, and is delivered");
            return self.breaks(Rule::Twice, text);
        }
        self.is_known(id, begin.insert);
        let Some(timer) = self.timers.get(&id).cloned() else {
            let text = format!("{id:x} was delivered, and never inserted");
            return self.breaks(Rule::Id, text);
        };
        let has_its_key = timer.key == begin.key || timer.was_dead && begin.key.is_none();
        let is_inserted = timer.insert == Some(begin.insert) && timer.handler == begin.handler;
        if !has_its_key || !is_inserted {
            let text = format!("{id:x} was delivered as another one, {begin:?}: {timer:?}");
            self.breaks(Rule::Id, text);
        }
        self.is_not_early(&timer, begin);
        self.is_not_twice(&timer, begin);
        let timer = Timer {
            // Cancels that may have been done before a kill were not done.
            may_be_cancelled: false,
            may_be_redriven: false,
            copied: None,
            last: Some(Last {
                state: State::Begun,
                attempt,
                round: self.round,
                begun_at: begin.at,
                line: self.line,
                thread: 0,
                wall: begin.wall,
            }),
            ..timer
        };
        self.timers.insert(id, timer);
        self.claims(id);
    }

    /// Notes that a timer was inserted, since it is delivered, even if the insert never got an answer.
    fn is_known(&mut self, id: u64, request: u64) {
        let sent = self.in_flight.get(&request).cloned();
        let in_flight = sent.and_then(|sent| sent.insert(request));
        if let Some(insert) = in_flight.or_else(|| self.unanswered.remove(&request)) {
            self.is_of(id, &insert);
        }
    }

    fn is_not_early(&mut self, timer: &Timer, begin: &Begin) {
        let Begin {
            at,
            id,
            attempt,
            wall,
            due,
            ..
        } = *begin;
        // In milliseconds, as reported by a delivery.
        let reported = due.div_euclid(1_000);
        // The line of the failure that this attempt follows, unless it is the first attempt.
        let since = match attempt as usize {
            0..2 => 0,
            number => timer.failures.get(number - 2).copied().unwrap_or(0),
        };
        let wanted = timer.wanted.iter();
        let mut wanted = wanted.filter(|it| it.done_by.is_none_or(|line| line > since));
        let was_moved = wanted.clone().any(|it| it.is_done && it.sent > since);
        let is_wanted = wanted.any(|it| rounded_up(it.due) == reported);
        // Whether the due time may differ from the requested one: after a failure or a redrive, unless the timer was moved since.
        let is_own = attempt > 1 && !was_moved || timer.was_dead;
        let tolerated = match timer.last.filter(|last| last.state == State::Failed) {
            Some(last) if last.attempt < attempt && self.was_still_since(&last) => {
                let delay = RETRY_DELAYS_MILLIS.get(last.attempt as usize - 1);
                let delay = delay.copied().unwrap_or(0) * 1_000;
                last.wall + delay - RETRY_TOLERANCE_MICROS
            }
            _ => i64::MIN,
        };
        let text = if wall < due {
            if self.could_show(due, at) {
                self.summary.on_their_way += 1;
                return;
            }
            format!("{} us before {due}", due - wall)
        } else if is_wanted || is_own && wall >= tolerated {
            return;
        } else if is_own {
            format!("{} us before its retry", tolerated - wall)
        } else {
            format!("and was not due at {due}, but as asked for last")
        };
        self.breaks(Rule::Early, format!("{id:x} {text}: {timer:?}"));
    }

    /// Whether the wall clock was not moved since a delivery began. The engine's time may be slightly older than that.
    fn was_still_since(&self, last: &Last) -> bool {
        self.summary.clock_moves == 0
            || last.round == self.round
                && self.moved_at.is_some_and(|at| at + 10_000 < last.begun_at)
    }

    /// Whether the wall clock may have shown this time just before the handler was called, and then was set back before the handler read it. The engine checks the clock just
    /// before the call, so each thread of the runtime may have one such delivery per move of the clock.
    fn could_show(&mut self, due: i64, at: u64) -> bool {
        self.moves
            .retain(|it| at.saturating_sub(it.done_at.unwrap_or(at)) < ON_ITS_WAY_MICROS);
        let excuse = self.moves.iter_mut().find(|it| {
            let until = it.done_at.unwrap_or(at).saturating_sub(it.at);
            it.excused < WORKERS && due <= it.wall.saturating_add_unsigned(until)
        });
        excuse.map(|it| it.excused += 1).is_some()
    }

    fn is_not_twice(&mut self, timer: &Timer, begin: &Begin) {
        let Begin { id, attempt, .. } = *begin;
        let may_begin = |(from, to): (u32, u32)| (from..=to).contains(&attempt);
        let mut may_come_again = false;
        let broken = match timer.last {
            _ if timer.cancelled.is_some() => Some(Rule::AfterDone),
            _ if timer.not_found.is_some() => Some(Rule::Twice),
            None => (attempt != 1).then_some(Rule::Attempt),
            Some(_) if timer.may_be_redriven && attempt == 1 => None,
            Some(last) if timer.copied.is_some_and(may_begin) => {
                may_come_again = attempt <= last.attempt;
                None
            }
            Some(last) if last.state == State::Begun && last.round == self.round => {
                Some(Rule::Twice)
            }
            Some(last) if last.state == State::Failed && attempt == last.attempt + 1 => None,
            Some(last) => {
                let in_flight = last.round != self.round && !self.is_settled(&last);
                may_come_again =
                    attempt == last.attempt && (in_flight || last.state == State::Begun);
                let rule = match last.state {
                    State::Failed | State::Begun => Rule::Attempt,
                    State::Well | State::Dead => Rule::Twice,
                };
                (!may_come_again).then_some(rule)
            }
        };
        if may_come_again && let Some(last) = timer.last {
            self.kills.entry(last.round).or_default().1 += 1;
            self.summary.duplicates += 1;
        }
        if let Some(rule) = broken {
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
        let is_last = attempt as usize > RETRY_DELAYS_MILLIS.len();
        let state = match how {
            How::Well => State::Well,
            How::Failed | How::Dropped if !is_last => State::Failed,
            How::Dead | How::Failed | How::Dropped => State::Dead,
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
        // The key of a dead letter is free, and stays so.
        timer.was_dead |= state == State::Dead;
    }

    /// Checks that an occurrence is not early, and is delivered once, unless it was in flight at a kill.
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
        // A line may have been on its way while the clock was moved: its wall time is from before the move.
        let is_since = self.moved_at.is_some_and(|moved| at >= moved);
        if is_since && (0..IN_TIME_MICROS).contains(&(wall - time)) {
            let (first, last) = self.service.calm.unwrap_or((time, time));
            self.service.calm = Some((first.min(time), last.max(time)));
        }
    }
}
