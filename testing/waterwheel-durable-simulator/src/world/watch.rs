//! Watches the outputs of the engine, and checks what must hold each time.

use std::sync::Arc;

use waterwheel_durable_core::engine::{Answer, Output, Query, Token};
use waterwheel_durable_core::store::{Id, Op, PageLimit, Row};

use super::{HANDLERS, SECOND, TICK, World};
use crate::calendars::Calendars;
use crate::namespaces::{Namespaces, of};

/// More than a row needs in addition to its payload, as the engine counts.
const ROW_BYTES: usize = 300;

/// The maximum lateness of a timer whose handler has a place for it, in microseconds: memory may be full of timers of the same second, a due time is rounded
/// up to a tick, and the clocks may drift by a millisecond before the timers are filed again.
const LATE: i64 = SECOND + 3_000;

impl World {
    /// Carries out the outputs of the engine.
    pub(super) fn follow(&mut self) -> Result<(), String> {
        let (boot, wall) = (self.now.boot_micros, self.now.wall_micros);
        if self.engine.stats().jumps != self.jumps_made {
            let (seen, made) = (self.engine.stats().jumps, self.jumps_made);
            return Err(format!(
                "the clock was set {made} times, and {seen} for the engine"
            ));
        }
        self.namespaces.look(boot, wall, false);
        while let Some(output) = self.engine.poll_output() {
            if self.traces {
                eprintln!("{:?} {output:?}", self.now);
            }
            match output {
                Output::Commit {
                    number,
                    commit,
                    ref ops,
                } => {
                    self.writes = Some(number);
                    let is_again = commit == self.last_commit;
                    self.last_commit = commit;
                    self.calendars.commits(number, ops, is_again, self.ahead)?;
                    self.model.commits(number, ops)?;
                    self.namespaces.expires(ops)?;
                    self.archives |= self.has_policies;
                    self.note_poison(ops)?;
                    self.commands.commits(number, ops, is_again)?;
                    self.disk.ask(output);
                }
                Output::Read(_, ref query) => {
                    if let Query::Load { limit, .. } = query {
                        self.is_light(*limit)?;
                    }
                    self.disk.ask(output);
                }
                Output::Deliver(delivery) if self.is_stopping => {
                    return Err(format!("delivered after a stop: {:?}", delivery.row));
                }
                Output::Deliver(delivery) => {
                    let row = delivery.row;
                    // The clock may be set before the delivery arrives.
                    if self.rng.bool() {
                        self.on_their_way.insert(row.id, delivery.at);
                    }
                    match row.id.occurrence() {
                        Some(_) => self.calendars.delivered(&row, wall)?,
                        None => self.model.delivered(&row, wall)?,
                    }
                    self.with_handlers.push(row.clone());
                    self.begins(&row)?;
                }
                Output::Answer(token, answer) => {
                    // A few inserts may be refused until another epoch begins.
                    if answer == Answer::OutOfIds && self.config.ids_in_epoch == Id::IN_EPOCH {
                        return Err("out of ids".to_owned());
                    }
                    self.answered(token, answer)?;
                }
                Output::Failed(_) => {
                    self.crash()?;
                    // Carry out the outputs of the next process.
                    return self.follow();
                }
                Output::Unhandled(name) if self.engine.has_handler(&name) => {
                    return Err(format!("{name} has a handler, and is reported"));
                }
                Output::UnreadablePolicy(name) => {
                    return Err(format!("the policy of {name} cannot be read"));
                }
                Output::Unhandled(_)
                | Output::NoneDue(_)
                | Output::Dead(..)
                | Output::UnreadableCalendar(..)
                | Output::Refused(_)
                | Output::Full
                | Output::HasSpace
                | Output::LeaseLost
                | Output::LeaseHeld => {}
            }
        }
        match self.writes {
            Some(commit) if self.engine.is_written() && !self.engine.has_failed() => Err(format!(
                "all is written, says the engine, and {commit} is not answered"
            )),
            _ => self.is_bounded(),
        }?;
        if let Some((_, handler)) = self.inserts.take() {
            self.namespaces.inserts(&handler, boot, None)?;
        }
        self.namespaces.look(boot, wall, self.engine.is_written());
        self.has_shares()?;
        self.is_archived()?;
        self.has_expired()?;
        if self.writes.is_none() && !self.may_have_to_do() {
            self.model.has_fired()?;
        }
        self.is_prompt()
    }

    /// Checks that a timer that may have ended the process is noted as it starts, and given up in the end.
    fn note_poison(&mut self, steps: &[Op]) -> Result<(), String> {
        for op in steps {
            match op {
                Op::Start(row) => {
                    self.starts.insert(row.id, Arc::clone(&row.handler));
                    self.starting.insert(row.id);
                }
                Op::Bury { row, error, .. } if error.starts_with("the process ended") => {
                    match row.id.occurrence() {
                        Some(_) => self.calendars.ended(row, true, true),
                        None => {
                            let starts = self.namespaces.starts_noted(&row.handler);
                            self.model.poisoned(row, starts)?;
                            self.archives = true;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn answered(&mut self, token: Token, answer: Answer) -> Result<(), String> {
        if Namespaces::is_in_flight(token) {
            self.shares.clear();
            return self
                .namespaces
                .answered(token, &answer, self.now.boot_micros);
        }
        if Calendars::is_in_flight(token) {
            let wall = self.now.wall_micros;
            return self.calendars.answered(token, &answer, wall);
        }
        if let Some((_, handler)) = self.inserts.take_if(|(inserted, _)| *inserted == token) {
            match &answer {
                Answer::Quota(over) => {
                    let boot = self.now.boot_micros;
                    let after = over.retry_after.unwrap_or(std::time::Duration::MAX);
                    self.namespaces.inserts(&handler, boot, Some(after))?;
                }
                // A planted fault answers such an insert at once.
                Answer::Created(_) => self.inserts = Some((token, handler)),
                _ => {}
            }
        }
        let created = match &answer {
            Answer::Created(handle) => Some(handle.clone()),
            _ => None,
        };
        let moves = self.model.moves(token);
        if let Some(id) = moves.filter(|_| answer == Answer::Done) {
            self.has_left(id);
        }
        self.model.answered(token, answer)?;
        let namespaces = &self.namespaces;
        created.map_or(Ok(()), |handle| {
            let is_kept = |at| namespaces.is_kept(&handle.handler, at);
            self.model.has_free_key(&handle, is_kept)
        })
    }

    /// Whether the store or the engine may have work now, or the engine is not asked to do it.
    pub(super) fn may_have_to_do(&self) -> bool {
        let now = self.now.boot_micros;
        // A timer that is overdue when it is loaded fires at the next tick.
        let is_awake = self
            .engine
            .poll_timeout()
            .is_some_and(|next| next <= now + TICK);
        let is_in_flight = self.disk.is_in_flight() || self.disk.has_replied();
        is_in_flight || is_awake || self.is_stopping || now <= self.may_wait_until
    }

    /// Checks that due timers are with their handlers or on their way, unless the store or the engine has work, or the handler has no place.
    fn is_prompt(&self) -> Result<(), String> {
        if self.may_have_to_do() {
            return Ok(());
        }
        let now = self.now.boot_micros;
        for (handler, places) in HANDLERS.into_iter().zip(self.concurrency) {
            let with_handler = self.with_handlers.iter();
            let running = with_handler.filter(|row| *row.handler == *handler).count();
            // A timer that is with its handler is in memory, and may leave no room there. So is one that waits until another one was tried.
            let accused = self.accused.values().filter(|of| ***of == *handler);
            let known = running + accused.count();
            let leaves_room = known == 0
                || self.config.max_bytes_in_memory == usize::MAX
                    && known <= self.config.max_in_memory / 4 * 3;
            let at = of(handler);
            let in_namespace = self.with_handlers.iter();
            let in_namespace = in_namespace.filter(|row| of(&row.handler) == at).count();
            let places_left = self.config.concurrency;
            let has_place = places_left.is_none_or(|limit| self.with_handlers.len() < limit)
                && self.namespaces.has_place(at, in_namespace, now);
            if running < places && leaves_room && has_place {
                let due = self.now.wall_micros - LATE;
                self.model.is_prompt(handler, due)?;
            }
        }
        Ok(())
    }

    /// Checks that a load brings no more than memory may hold, apart from its last row.
    pub(super) fn is_light(&self, limit: PageLimit) -> Result<(), String> {
        let all = self.config.max_bytes_in_memory.max(1);
        match limit.bytes <= all && limit.rows <= self.config.max_in_memory {
            true => Ok(()),
            false => Err(format!("{limit:?} is loaded, of {all} bytes")),
        }
    }

    /// Checks that memory holds no more than allowed: the bytes, plus a minimum and a row of each handler.
    pub(super) fn is_bounded(&self) -> Result<(), String> {
        let payloads: usize = self.with_handlers.iter().map(Row::bytes).sum();
        let (held, bytes) = (self.engine.stats().held, self.engine.stats().held_bytes);
        let limit = HANDLERS.len() * self.config.max_in_memory;
        let floor = (self.config.max_bytes_in_memory / 32).min(64 << 10);
        let largest = HANDLERS.len() * (floor + self.largest + ROW_BYTES);
        let max_bytes = self.config.max_bytes_in_memory.saturating_add(largest);
        let (filed, known) = (self.engine.stats().in_wheel, self.engine.stats().in_memory);
        if filed > known {
            return Err(format!("{filed} are in the wheel, of {known} in memory"));
        }
        match held <= limit && bytes <= max_bytes && payloads <= bytes {
            true => Ok(()),
            false => Err(format!(
                "{held} of {limit} timers and {bytes} of {max_bytes} bytes are in memory, {payloads} are with handlers"
            )),
        }
    }
}
