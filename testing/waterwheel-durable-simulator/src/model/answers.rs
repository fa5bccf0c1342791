//! Is an answer correct?

use std::sync::Arc;

use waterwheel_durable_core::engine::{Answer, Token};
use waterwheel_durable_core::store::Handle;

use super::timer::{Archived, Settled, Timer};
use super::{InFlight, Kept, Model, NOTED_FROM, Process};

impl Model {
    /// Checks an answer.
    ///
    /// # Errors
    ///
    /// If the answer contradicts what is known.
    pub fn answered(&mut self, token: Token, answer: Answer) -> Kept {
        let Some(request) = self.in_flight.remove(&token) else {
            return Err(format!(
                "request {token} was answered twice, with {answer:?}"
            ));
        };
        let notes_starts = *self.unclean_ends.end() >= NOTED_FROM;
        match (request, answer) {
            (_, Answer::NotFound) if self.forged.contains(&token) => Ok(()),
            (InFlight::Insert, Answer::Full | Answer::Quota(_) | Answer::OutOfIds) => {
                self.is_undone(token);
                Ok(())
            }
            (_, Answer::Refused(_) | Answer::Failed(_) | Answer::ShuttingDown) => {
                self.is_undone(token);
                Ok(())
            }
            (request, Answer::Unknown(_)) => {
                self.unknown(request);
                Ok(())
            }
            (InFlight::Insert, Answer::Created(handle)) => self.is_created(token, &handle),
            (InFlight::Insert, Answer::Existing(handle)) => {
                self.is_undone(token);
                self.exists(token, &handle)
            }
            (InFlight::Cancel(id), Answer::Done) => {
                let timer = self.known(id)?;
                timer.is_cancelled = true;
                match timer.is_with_handler || timer.has_ended == Some(Process::This) {
                    true => Err(format!(
                        "a timer that was delivered is cancelled: {timer:?}"
                    )),
                    false => Ok(()),
                }
            }
            (InFlight::Reschedule(id, due), Answer::Done) => {
                let others = self.in_flight.values().filter_map(|request| match request {
                    InFlight::Reschedule(other, due) if *other == id => Some(*due),
                    _ => None,
                });
                let mut dues: Vec<_> = others.collect();
                dues.push(due);
                let timer = self.known(id)?;
                if timer.is_with_handler || timer.has_ended == Some(Process::This) {
                    return Err(format!("a timer that was delivered is moved: {timer:?}"));
                }
                timer.dues = dues;
                timer.not_before = None;
                timer.was_never_started();
                Ok(())
            }
            (InFlight::Redrive(id), Answer::Done) => {
                let timer = self.known(id)?;
                if timer.has_ended == Some(Process::Earlier) {
                    timer.has_ended = None;
                }
                timer.was_never_started();
                Ok(())
            }
            (InFlight::Redrive(_), Answer::NotFound) => Ok(()),
            (InFlight::Cancel(id) | InFlight::Reschedule(id, _), Answer::AlreadyFired) => {
                let timer = self.known(id)?;
                let has_fired = timer.is_with_handler || timer.has_ended.is_some();
                if !has_fired && !timer.is_starting && !notes_starts {
                    return Err(format!(
                        "a timer that was not delivered had fired: {timer:?}"
                    ));
                }
                if !has_fired && !timer.is_starting {
                    // A later commit should note its start.
                    self.said_to_have_fired.insert(id);
                }
                Ok(())
            }
            (InFlight::Cancel(id) | InFlight::Reschedule(id, _), Answer::NotFound) => {
                // Possibly cancelled by a command, whose answer comes later.
                let mut in_flight = self.in_flight.values();
                let is_in_flight =
                    in_flight.any(|it| matches!(it, InFlight::Cancel(of) if *of == id));
                let timer = self.known(id)?;
                let may_be_gone = timer.is_over() || is_in_flight;
                match may_be_gone || !timer.is_durable {
                    true => Ok(()),
                    false => Err(format!("a timer is lost: {timer:?}")),
                }
            }
            (request, answer) => Err(format!("{answer:?} is no answer to {request:?}")),
        }
    }

    pub(super) fn unknown(&mut self, request: InFlight) {
        match request {
            InFlight::Cancel(id) => {
                if let Some(timer) = self.timers.get_mut(&id) {
                    timer.may_be_cancelled = true;
                }
            }
            // The requested change was noted as possible.
            InFlight::Redrive(_) | InFlight::Reschedule(..) | InFlight::Insert => {}
        }
    }

    /// Notes that this request has had no effect.
    pub(super) fn is_undone(&mut self, token: Token) {
        if let Some(insert) = self.inserts.get_mut(&token) {
            insert.is_undone = true;
        }
    }

    pub(super) fn is_created(&mut self, token: Token, handle: &Handle) -> Kept {
        let insert = &self.inserts[&token].timer;
        let (due, key, handler) = (insert.due, insert.key.clone(), Arc::clone(&insert.handler));
        if handle.due != due || handle.handler != handler {
            return Err(format!("{handle:?} is not of {insert:?}"));
        }
        let mut others = self.timers.values().filter(|it| it.handle.id != handle.id);
        let other = others.find(|it| {
            it.key == key && it.handle.handler == handler && it.is_durable && !it.is_over()
        });
        if key.is_some()
            && let Some(other) = other.filter(|it| !it.was_redriven)
        {
            return Err(format!("{handle:?} has the key of {other:?}"));
        }
        self.timer(token, handle.id, due)?.is_durable = true;
        Ok(())
    }

    /// Checks that the key of a newly created timer belongs to no archived one.
    ///
    /// # Errors
    ///
    /// An archived timer has the key.
    pub fn has_free_key(&self, handle: &Handle, is_kept: impl Fn(Settled) -> bool) -> Kept {
        let Some(key) = self.timers.get(&handle.id).and_then(|it| it.key.as_ref()) else {
            return Ok(());
        };
        let has_key = |other: &&Timer| {
            let is_other = other.handle.id != handle.id && other.handle.handler == handle.handler;
            is_other && other.key.as_ref() == Some(key) && !other.was_redriven
        };
        let is_archived = |other: &Timer| match other.archived {
            Archived::At(at) => {
                let has_ended = other.has_ended == Some(Process::This);
                has_ended && !other.was_given_up && is_kept(at)
            }
            _ => false,
        };
        let mut others = self.timers.values().filter(has_key);
        match others.find(|other| is_archived(other)) {
            None => Ok(()),
            Some(other) => Err(format!(
                "{handle:?} has the key of {other:?}, which is archived"
            )),
        }
    }

    /// Notes that this timer is said to have the key of an insert.
    pub(super) fn exists(&self, token: Token, handle: &Handle) -> Kept {
        let insert = &self.inserts[&token].timer;
        let has_key = match self.timers.get(&handle.id) {
            Some(timer) => {
                let is_free = timer.is_cancelled || timer.has_no_key;
                timer.key == insert.key && timer.handle == *handle && !is_free
            }
            // The timer comes from an insert whose answer was lost.
            None => self.inserts.values().any(|it| {
                it.id.is_none()
                    && !it.is_undone
                    && (&it.timer.key, &it.timer.handler) == (&insert.key, &handle.handler)
                    && it.timer.due == handle.due
            }),
        };
        match has_key && insert.key.is_some() && handle.handler == insert.handler {
            true => Ok(()),
            false => Err(format!("{handle:?} is said to have the key of {insert:?}")),
        }
    }
}
