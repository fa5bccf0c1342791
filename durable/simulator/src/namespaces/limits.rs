//! May it begin, or be inserted, now?

use std::time::Duration;

use waterwheel_store::Row;

use super::{Asked, NAMES, NOT_NOTED, Namespaces, STARTS, of};
use crate::model::Kept;

impl Namespaces {
    /// Whether one more delivery would begin at once, certainly, beside so many.
    #[must_use]
    pub fn has_place(&self, at: usize, running: usize, boot: u64) -> bool {
        let Some(terms) = self.terms(at).filter(|_| self.is_open(at) == Some(true)) else {
            return false;
        };
        let has_rate = terms
            .rate
            .is_none_or(|rate| self.all[at].begun.has_one(boot, rate));
        has_rate && terms.concurrency.is_none_or(|most| running < most)
    }

    /// Checks that a delivery may begin, after which so many of its namespace go on. If its start was noted first, it had its place and its turn then.
    ///
    /// # Errors
    ///
    /// It is paused, or beyond a limit.
    pub fn delivered(&mut self, row: &Row, was_noted: bool, running: usize, boot: u64) -> Kept {
        let at = of(&row.handler);
        if self.is_open(at) == Some(false) {
            return Err(format!("{} is closed: {row:?}", NAMES[at]));
        }
        if was_noted {
            return Ok(());
        }
        let Some(terms) = self.terms(at).cloned() else {
            self.all[at].begun.restart(boot);
            return Ok(());
        };
        if terms.concurrency.is_some_and(|most| running > most) {
            return Err(format!("{running} of {} go on: {terms:?}", NAMES[at]));
        }
        match terms.rate {
            Some(rate) if !self.all[at].begun.note(boot, rate) => {
                Err(format!("{} exceeds its rate, {rate:?}", NAMES[at]))
            }
            _ => Ok(()),
        }
    }

    /// The start of a timer is noted: it takes its turn now, and is delivered later.
    pub fn starts(&mut self, row: &Row, boot: u64) {
        self.all[of(&row.handler)].begun.restart(boot);
    }

    /// Checks that an insert was within the quota, or was not and is refused for so long.
    ///
    /// # Errors
    ///
    /// It was not.
    pub fn inserts(&mut self, handler: &str, boot: u64, refused: Option<Duration>) -> Kept {
        let at = of(handler);
        let Some(terms) = self.terms(at).cloned() else {
            self.all[at].inserted.restart(boot);
            return Ok(());
        };
        let inserted = &mut self.all[at].inserted;
        let kept = match (terms.quota, refused) {
            (None, refused) => refused.is_none(),
            (Some(quota), Some(after)) => inserted.next(quota).is_some_and(|next| {
                let after = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
                after > 0 && after <= next.saturating_sub(boot)
            }),
            (Some(quota), None) => inserted.note(boot, quota),
        };
        match kept {
            true => Ok(()),
            false => Err(format!(
                "an insert was refused: {refused:?}, {terms:?} {inserted:?}"
            )),
        }
    }

    /// How many starts may be noted of a timer before it is given up, at least.
    #[must_use]
    pub fn starts_noted(&self, handler: &str) -> u32 {
        let at = of(handler);
        let asked = self.asked.values().filter_map(|asked| match asked {
            Asked::Policy(of, terms) if *of == at => Some(terms),
            _ => None,
        });
        let terms = self.all[at].terms.iter().chain(asked);
        let starts = terms.map(|terms| terms.starts.unwrap_or(STARTS)).min();
        starts.unwrap_or(STARTS) - NOT_NOTED
    }
}
