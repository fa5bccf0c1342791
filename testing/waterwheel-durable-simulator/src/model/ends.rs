//! Checks at the end of a process, and of a life.

use std::collections::{HashMap, HashSet};

use waterwheel_durable_core::store::{Archived as Archive, Dead, Id};

use super::timer::{Archived, Settled, Timer};
use super::{InFlight, Kept, Model, Process};

impl Model {
    /// Checks an orderly shutdown. If the service was idle, nothing is repeated because of it.
    ///
    /// # Errors
    ///
    /// A request was not answered.
    pub fn stopped(&mut self, was_idle: bool) -> Kept {
        self.is_answered()?;
        match was_idle {
            true => self.ends(),
            false => self.crashed(false),
        }
        self.unclean_ends = 0..=0;
        for timer in self.timers.values_mut() {
            // The count of starts begins anew.
            timer.noted = (0, 0);
        }
        Ok(())
    }

    /// Ends the process. Unanswered requests may have been done. `may_be_clean`: it may have noted an orderly end.
    pub fn crashed(&mut self, may_be_clean: bool) {
        let (min, max) = (self.unclean_ends.start(), self.unclean_ends.end());
        let min = if may_be_clean { 0 } else { min + 1 };
        self.unclean_ends = min..=max + 1;
        self.ends();
        if may_be_clean {
            for timer in self.timers.values_mut() {
                timer.noted.0 = 0;
            }
        }
        for request in std::mem::take(&mut self.in_flight).into_values() {
            self.unknown(request);
        }
        for timer in self.timers.values_mut() {
            timer.is_with_handler = false;
            timer.not_before = None;
            timer.retried_within = None;
            timer.least_failures = timer.written_failures;
            // Deliveries that had ended may not have been settled.
            timer.has_ended = timer.has_ended.map(|_| Process::Earlier);
        }
    }

    fn ends(&mut self) {
        self.said_to_have_fired.clear();
        self.leaving.clear();
        for timer in self.timers.values_mut() {
            timer.is_starting = false;
            timer.noted.0 += u32::from(std::mem::take(&mut timer.was_started));
            timer.noted.1 += u32::from(std::mem::take(&mut timer.is_noted));
        }
    }

    /// Checks that no timer of this handler that was certainly due by then is still waiting.
    ///
    /// # Errors
    ///
    /// A timer is waiting.
    pub fn is_prompt(&self, handler: &str, wall_micros: i64) -> Kept {
        let timers = self.timers.values().filter(|it| it.is_open());
        let mut late = timers.filter(|it| {
            *it.handle.handler == *handler && it.certain_due().is_some_and(|at| at <= wall_micros)
        });
        // A request keeps the timer out of memory until it is answered.
        let is_asked_for = |timer: &Timer| {
            let mut in_flight = self.in_flight.values();
            in_flight.any(|it| matches!(it, InFlight::Cancel(id) | InFlight::Reschedule(id, _) if *id == timer.handle.id))
        };
        // A timer that was with its handler when the process ended may wait until another one was tried.
        let is_accused = |timer: &Timer| timer.noted.1 > 0;
        match late.find(|timer| !is_asked_for(timer) && !is_accused(timer)) {
            None => Ok(()),
            Some(timer) => Err(format!("late, {wall_micros} us are past: {timer:?}")),
        }
    }

    /// Checks that nothing is left to do.
    ///
    /// # Errors
    ///
    /// A timer was lost, a request was not answered, or the dead letters are not those that were given up.
    pub fn is_done(&mut self, dead: &[Dead]) -> Kept {
        self.is_answered()?;
        for Dead { row, .. } in dead {
            self.is_as_inserted(row)?;
            let timer = self.known(row.id)?;
            if !timer.was_given_up || timer.is_cancelled {
                return Err(format!("a dead letter that was not given up: {timer:?}"));
            }
        }
        let dead: HashSet<Id> = dead.iter().map(|dead| dead.row.id).collect();
        for timer in self.timers.values() {
            if timer.is_durable && !timer.is_over() {
                return Err(format!("never delivered: {timer:?}"));
            }
            let may_be_cancelled = timer.is_cancelled || timer.may_be_cancelled;
            let is_dead = timer.has_ended.is_some() && timer.was_given_up;
            if is_dead && !may_be_cancelled && !dead.contains(&timer.handle.id) {
                return Err(format!("given up, and no dead letter: {timer:?}"));
            }
        }
        Ok(())
    }

    pub(super) fn is_answered(&self) -> Kept {
        match self.in_flight.iter().min_by_key(|(token, _)| **token) {
            None => Ok(()),
            Some((token, request)) => Err(format!("request {token} was not answered: {request:?}")),
        }
    }

    /// Checks the archive of a handler, while nothing has to be written. A timer that has ended and is not archived has released its key.
    ///
    /// # Errors
    ///
    /// A timer is archived that should not be, or twice, or is missing.
    pub fn is_archived(
        &mut self,
        handler: &str,
        archive: &[Archive],
        is_kept: impl Fn(Settled) -> bool,
    ) -> Kept {
        let mut found = HashMap::new();
        for archived in archive {
            if found.insert(archived.id, archived).is_some() {
                return Err(format!("archived twice: {archived:?}"));
            }
            let timer = self.timers.get(&archived.id);
            let is_right = timer.is_some_and(|timer| {
                let has_key = archived.key == timer.key || timer.was_redriven;
                let is_it = *timer.handle.handler == *handler && has_key;
                let is_not =
                    timer.archived == Archived::Not && timer.has_ended == Some(Process::This);
                is_it && timer.has_ended.is_some() && !timer.is_cancelled && !is_not
            });
            if !is_right {
                return Err(format!("{archived:?} is archived, of {timer:?}"));
            }
        }
        let timers = self
            .timers
            .values_mut()
            .filter(|it| *it.handle.handler == *handler && it.has_ended == Some(Process::This));
        for timer in timers {
            timer.has_no_key |= !found.contains_key(&timer.handle.id);
            if timer.was_given_up {
                continue;
            }
            let Archived::At(at) = timer.archived else {
                continue;
            };
            let archived = found.get(&timer.handle.id);
            let is_right =
                archived.is_some_and(|it| it.at.as_millis() == at.wall.div_euclid(1_000));
            if is_kept(at) && !is_right {
                return Err(format!("{archived:?} is archived, of {timer:?}"));
            }
        }
        Ok(())
    }
}
