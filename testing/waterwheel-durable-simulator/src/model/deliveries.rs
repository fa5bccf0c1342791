//! Is a delivery expected, and as it was inserted?

use std::sync::Arc;

use waterwheel_durable_core::engine::Token;
use waterwheel_durable_core::store::{Due, Handle, Id, Op, Row};

use super::timer::{Archived, Settled, Timer};
use super::{Insert, Kept, Model, NOTED_FROM, Process};

impl Model {
    /// Checks a delivery.
    ///
    /// # Errors
    ///
    /// The delivery is early, is one too many, or was cancelled.
    pub fn delivered(&mut self, row: &Row, wall_micros: i64) -> Kept {
        if row.due.as_millis() * 1_000 > wall_micros {
            return Err(format!("early, at {wall_micros} us: {row:?}"));
        }
        let token = self.is_as_inserted(row)?;
        let timer = self.timer(token, row.id, row.due)?;
        let wrong = if timer.is_cancelled {
            "it was cancelled"
        } else if timer.is_with_handler {
            "it is with its handler"
        } else if timer.has_ended == Some(Process::This) {
            "it has ended"
        } else if timer.not_before.is_some_and(|at| wall_micros < at) {
            "it is to be tried later"
        } else if row.failures > timer.failures {
            "it has not failed so often"
        } else if row.failures < timer.least_failures {
            "it has failed more often"
        } else if !timer.may_be_due(row) {
            "it was not due then"
        } else if row.first_due != timer.handle.due {
            "it was due at another time at first"
        } else {
            timer.is_with_handler = true;
            timer.was_started |= timer.is_noted;
            timer.is_starting = false;
            (timer.failures, timer.written_failures) = (row.failures, row.failures);
            timer.least_failures = row.failures;
            timer.not_before = None;
            self.said_to_have_fired.remove(&row.id);
            return Ok(());
        };
        Err(format!("{wrong}: {row:?} {timer:?}"))
    }

    /// Notes that the handler of a delivery was not called, since the timer is no longer due.
    pub fn withdrawn(&mut self, row: &Row) {
        if let Some(timer) = self.timers.get_mut(&row.id) {
            timer.is_with_handler = false;
            let was_moved = row.failures > 0 || timer.was_snoozed;
            timer.not_before = was_moved.then(|| row.due.as_millis() * 1_000);
        }
    }

    /// Notes that a delivery has ended successfully, or the timer was given up.
    pub fn ended(&mut self, id: Id, was_given_up: bool) {
        if let Some(timer) = self.timers.get_mut(&id) {
            timer.is_with_handler = false;
            timer.has_ended = Some(Process::This);
            timer.was_given_up = was_given_up;
        }
    }

    /// Notes that a delivery has failed or was snoozed. A commit will tell when the next one is due, which must be within these times.
    pub fn comes_back(&mut self, id: Id, has_failed: bool, within: (i64, i64)) {
        if let Some(timer) = self.timers.get_mut(&id) {
            timer.is_with_handler = false;
            timer.failures += u32::from(has_failed);
            timer.was_snoozed |= !has_failed;
            timer.least_failures = timer.failures;
            timer.not_before = Some(within.0);
            timer.retried_within = Some(within);
            timer.may_have_moved();
        }
    }

    /// Notes that a delivery has ended successfully, and whether it is archived, if that is known.
    pub fn settles(&mut self, id: Id, is_archived: Option<bool>, at: Settled) {
        if let Some(timer) = self.timers.get_mut(&id) {
            timer.archived = match is_archived {
                None => Archived::Unknown,
                Some(false) => Archived::Not,
                Some(true) => Archived::At(at),
            };
        }
    }

    /// Checks what a commit writes about failed deliveries, and notes starts.
    ///
    /// # Errors
    ///
    /// A retry is too early or too late, or a start is noted without need.
    pub fn commits(&mut self, number: u64, steps: &[Op]) -> Kept {
        let leaves = steps.iter().filter_map(|op| match op {
            Op::Settle(row)
            | Op::Archive(row, _)
            | Op::Bury { row, .. }
            | Op::Retry(row, ..)
            | Op::Snooze(row, ..) => Some(row.id),
            _ => None,
        });
        self.leaving.insert(number, leaves.collect());
        for op in steps {
            match op {
                Op::Start(row) if *self.unclean_ends.end() < NOTED_FROM => {
                    return Err(format!(
                        "noted after {:?} unclean ends: {row:?}",
                        self.unclean_ends
                    ));
                }
                Op::Retry(row, due, _) | Op::Snooze(row, due, _) => {
                    let timer = self.timers.get_mut(&row.id);
                    let within = timer.and_then(|timer| {
                        let within = timer.retried_within.take()?;
                        timer.not_before = Some(due.as_millis() * 1_000);
                        Some(within)
                    });
                    let due = due.as_millis() * 1_000;
                    if within.is_some_and(|(from, to)| due < from || due > to) {
                        return Err(format!(
                            "tried again at {due}, and not within {within:?}: {row:?}"
                        ));
                    }
                }
                Op::Start(row) if row.id.occurrence().is_none() => {
                    let token = self.is_as_inserted(row)?;
                    let timer = self.timer(token, row.id, row.due)?;
                    (timer.is_noted, timer.is_starting) = (true, true);
                    let (min, max) = timer.noted;
                    if !(min..=max).contains(&row.start_count()) {
                        return Err(format!("not as often as {row:?}: {timer:?}"));
                    }
                    self.said_to_have_fired.remove(&row.id);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Notes that a request was answered: a commit is durable, or was refused. Returns the timers that it has removed, or moved to a later attempt.
    pub fn replied(&mut self, number: u64, is_done: bool) -> Vec<Id> {
        let leaving = self.leaving.remove(&number).filter(|_| is_done);
        let left = leaving.unwrap_or_default();
        for id in &left {
            if let Some(timer) = self.timers.get_mut(id) {
                timer.was_never_started();
            }
        }
        left
    }

    /// Checks, while nothing has to be written, that timers that are said to have fired were delivered, or that their starts were noted.
    ///
    /// # Errors
    ///
    /// A timer was not.
    pub fn has_fired(&self) -> Kept {
        match self.said_to_have_fired.iter().next() {
            None => Ok(()),
            Some(id) => Err(format!(
                "a timer that was not delivered had fired: {:?}",
                self.timers.get(id)
            )),
        }
    }

    /// Checks that a timer that is given up without a delivery was started in this many processes before.
    ///
    /// # Errors
    ///
    /// The timer was started fewer times.
    pub fn poisoned(&mut self, row: &Row, starts: u32) -> Kept {
        let timer = self.known(row.id)?;
        if timer.noted.1 < starts || timer.is_with_handler {
            return Err(format!(
                "given up, and it was not started in {starts} processes: {timer:?}"
            ));
        }
        timer.has_ended = Some(Process::This);
        timer.was_given_up = true;
        self.said_to_have_fired.remove(&row.id);
        Ok(())
    }

    /// The timer of an insert, with this id, and with this due time if it is new.
    pub(super) fn timer(&mut self, token: Token, id: Id, due: Due) -> Result<&mut Timer, String> {
        let Some(insert) = self.inserts.get_mut(&token) else {
            return Err(format!("no insert has made {id}"));
        };
        let made = *insert.id.get_or_insert(id);
        if made != id || insert.is_undone {
            return Err(format!("{insert:?} has made {id}"));
        }
        let Row { handler, key, .. } = &insert.timer;
        Ok(self.timers.entry(id).or_insert_with(|| Timer {
            handle: Handle {
                id,
                due: insert.timer.due,
                handler: Arc::clone(handler),
            },
            key: key.clone(),
            dues: vec![due],
            was_redriven: false,
            was_snoozed: false,
            is_durable: false,
            is_with_handler: false,
            has_ended: None,
            is_cancelled: false,
            may_be_cancelled: false,
            was_given_up: false,
            failures: 0,
            least_failures: 0,
            written_failures: 0,
            not_before: None,
            retried_within: None,
            archived: Archived::Unknown,
            has_no_key: false,
            noted: (0, 0),
            is_noted: false,
            was_started: false,
            is_starting: false,
        }))
    }

    pub(super) fn known(&mut self, id: Id) -> Result<&mut Timer, String> {
        self.timers
            .get_mut(&id)
            .ok_or_else(|| format!("{id} was never inserted"))
    }

    /// Checks that a row is as it was inserted. Returns the token of the insert.
    pub(super) fn is_as_inserted(&self, row: &Row) -> Result<Token, String> {
        let token = row.payload.first_chunk().copied().map(Token::from_le_bytes);
        let insert = token.and_then(|token| self.inserts.get(&token));
        let (Some(token), Some(Insert { timer, .. })) = (token, insert) else {
            return Err(format!("never inserted: {row:?}"));
        };
        let was_redriven = self.timers.get(&row.id).is_some_and(|it| it.was_redriven);
        let has_key = row.key == timer.key || was_redriven && row.key.is_none();
        match has_key && row.handler == timer.handler && row.payload == timer.payload {
            true => Ok(token),
            false => Err(format!("{row:?} was inserted as {timer:?}")),
        }
    }
}
