//! May a delivery begin, or a timer be inserted, now?

use std::time::Duration;

use waterwheel_durable_core::store::Row;

use super::{InFlight, NAMES, NOT_NOTED, Namespaces, STARTS, of};
use crate::model::Kept;

impl Namespaces {
    /// Whether another delivery would certainly begin at once, while this many are running.
    #[must_use]
    pub fn has_place(&self, at: usize, running: usize, boot: u64) -> bool {
        let Some(terms) = self.terms(at).filter(|_| self.is_open(at) == Some(true)) else {
            return false;
        };
        self.all[at].begun.has_one(boot) && terms.concurrency.is_none_or(|max| running < max)
    }

    /// Checks that a delivery may begin, with which `running` of its namespace are running. If its start was noted first, it had its place then.
    ///
    /// # Errors
    ///
    /// The namespace is paused, or beyond a limit.
    pub fn delivered(&mut self, row: &Row, was_noted: bool, running: usize, boot: u64) -> Kept {
        let at = of(&row.handler);
        if self.is_open(at) == Some(false) {
            return Err(format!("{} is closed: {row:?}", NAMES[at]));
        }
        let namespace = &mut self.all[at];
        let terms = namespace.terms.last().cloned().unwrap_or_default();
        // A change of policy since the start was noted does not send the delivery back.
        let is_bounded = !was_noted || !namespace.has_changed;
        if is_bounded && terms.concurrency.is_some_and(|max| running > max) {
            return Err(format!("{running} of {} go on: {terms:?}", NAMES[at]));
        }
        match namespace.begun.note(boot) {
            true => Ok(()),
            false => Err(format!(
                "{} exceeds its rate: {:?}",
                NAMES[at], namespace.begun
            )),
        }
    }

    /// Notes that a delivery that had begun at this time was withdrawn.
    pub fn withdrawn(&mut self, handler: &str, at: u64) {
        self.all[of(handler)].begun.give_back(at);
    }

    /// Checks that an insert was within the quota, or was beyond it and is refused for this time.
    ///
    /// # Errors
    ///
    /// The insert or its refusal was wrong.
    pub fn inserts(&mut self, handler: &str, boot: u64, refused: Option<Duration>) -> Kept {
        let inserted = &mut self.all[of(handler)].inserted;
        let kept = match refused {
            Some(after) => {
                let after = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
                let (min, max) = (inserted.waits_at_least(boot), inserted.waits_at_most(boot));
                after > 0 && (min..=max).contains(&after)
            }
            None => inserted.note(boot),
        };
        match kept {
            true => Ok(()),
            false => Err(format!(
                "an insert was refused: {refused:?}, at {boot} us: {inserted:?}"
            )),
        }
    }

    /// The minimum number of starts that may be noted of a timer before it is given up.
    #[must_use]
    pub fn starts_noted(&self, handler: &str) -> u32 {
        let at = of(handler);
        let in_flight = self.in_flight.values().filter_map(|request| match request {
            InFlight::Policy(of, terms) if *of == at => Some(terms),
            _ => None,
        });
        let terms = self.all[at].terms.iter().chain(in_flight);
        let starts = terms.map(|terms| terms.starts.unwrap_or(STARTS)).min();
        starts.unwrap_or(STARTS) - NOT_NOTED
    }
}
