//! What does the engine put out, and what must hold each time?

use waterwheel_durable::engine::{Answer, Call, Output};
use waterwheel_store::{Most, Row};

use super::{HANDLERS, SECOND, TICK, World};
use crate::calendars::Calendars;

/// More than a row takes beside its payload, as the engine counts.
const ROW_BYTES: usize = 300;

/// So late may a timer be, in microseconds, whose handler has a place for it: memory may be full of timers of the same second, a due time is rounded up to a
/// tick, and the clocks may move against each other by a millisecond before the timers are filed again.
const LATE: i64 = SECOND + 3_000;

impl World {
    /// Does what the engine wants done.
    pub(super) fn follow(&mut self) -> Result<(), String> {
        while let Some(output) = self.engine.output() {
            if self.traces {
                eprintln!("{:?} {output:?}", self.now);
            }
            match output {
                Output::Store(request) => {
                    match &request.call {
                        Call::Commit(commit, steps) => {
                            self.writes = Some(request.number);
                            let is_again = *commit == self.last_commit;
                            self.last_commit = *commit;
                            self.calendars
                                .commits(request.number, steps, is_again, self.ahead)?;
                        }
                        Call::Load { most, .. } => self.is_light(*most)?,
                        _ => {}
                    }
                    self.disk.ask(request);
                }
                Output::Deliver(delivery) if self.is_stopping => {
                    return Err(format!("delivered after a stop: {:?}", delivery.row));
                }
                Output::Deliver(delivery) if delivery.row.id.occurrence().is_some() => {
                    let wall = self.now.wall_micros;
                    self.calendars.delivered(&delivery.row, wall)?;
                    self.with_handlers.push(delivery.row);
                }
                Output::Deliver(delivery) => {
                    self.model.delivered(&delivery.row, self.now.wall_micros)?;
                    self.with_handlers.push(delivery.row);
                }
                Output::Answer(token, answer) => {
                    if answer == Answer::OutOfIds {
                        return Err("out of ids".to_owned());
                    }
                    match Calendars::is_asked(token) {
                        true => {
                            let wall = self.now.wall_micros;
                            self.calendars.answered(token, &answer, wall)?;
                        }
                        false => self.model.answered(token, answer)?,
                    }
                }
                Output::Failed(_) => return self.crash(),
                Output::Unhandled(name) if self.engine.has_handler(&name) => {
                    return Err(format!("{name} has a handler, and is reported"));
                }
                Output::Unhandled(_)
                | Output::NoneDue(_)
                | Output::Dead(..)
                | Output::UnreadableCalendar(..)
                | Output::UnreadablePolicy(_)
                | Output::Refused(_) => {}
            }
        }
        match self.writes {
            Some(commit) if self.engine.is_written() && !self.engine.has_failed() => Err(format!(
                "all is written, says the engine, and {commit} is not answered"
            )),
            _ => self.is_bounded(),
        }?;
        self.is_prompt()
    }

    /// What is due is with its handler, or on its way: the store has something to do, or the engine has, or the handler has no place for it.
    fn is_prompt(&self) -> Result<(), String> {
        let now = self.now.boot_micros;
        let has_to_do = self.disk.is_asked() || self.disk.has_replied();
        // What is overdue as it is loaded comes up at the next tick.
        let is_awake = self
            .engine
            .next_turn()
            .is_some_and(|next| next <= now + TICK);
        if has_to_do || is_awake || self.is_stopping || now <= self.may_wait_until {
            return Ok(());
        }
        for (handler, places) in HANDLERS.into_iter().zip(self.concurrency) {
            let with_handler = self.with_handlers.iter();
            let running = with_handler.filter(|row| *row.handler == *handler).count();
            // What is with its handler is in memory, and may leave no room there.
            let leaves_room = running == 0
                || self.config.most_bytes_in_memory == usize::MAX
                    && running <= self.config.most_in_memory / 4 * 3;
            if running < places && leaves_room {
                let due = self.now.wall_micros - LATE;
                self.model.is_prompt(handler, due)?;
            }
        }
        Ok(())
    }

    /// A load brings no more than may be in memory, but for its last row.
    pub(super) fn is_light(&self, most: Most) -> Result<(), String> {
        let all = self.config.most_bytes_in_memory.max(1);
        match most.bytes <= all && most.rows <= self.config.most_in_memory {
            true => Ok(()),
            false => Err(format!("{most:?} is loaded, of {all} bytes")),
        }
    }

    /// No more is in memory than may be: a floor and a row of each handler beside the bytes.
    pub(super) fn is_bounded(&self) -> Result<(), String> {
        let payloads: usize = self.with_handlers.iter().map(Row::bytes).sum();
        let (held, bytes) = (self.engine.held(), self.engine.held_bytes());
        let most = HANDLERS.len() * self.config.most_in_memory;
        let floor = (self.config.most_bytes_in_memory / 32).min(64 << 10);
        let largest = HANDLERS.len() * (floor + self.largest + ROW_BYTES);
        let most_bytes = self.config.most_bytes_in_memory.saturating_add(largest);
        match held <= most && bytes <= most_bytes && payloads <= bytes {
            true => Ok(()),
            false => Err(format!(
                "{held} of {most} timers and {bytes} of {most_bytes} bytes are in memory, {payloads} are with handlers"
            )),
        }
    }
}
