//! Archived timers that may expire, and those that are certainly kept.

use waterwheel_durable_core::store::Op;

use super::{CALM, DAY, NAMES, Namespaces, of};
use crate::model::{Kept, Settled};

impl Namespaces {
    /// Lets later commits ask for everything that may expire now. `is_written`: no earlier requests are pending.
    pub fn look(&mut self, boot: u64, wall: i64, is_written: bool) {
        let today = wall.div_euclid(DAY);
        let is_calm = boot >= self.calm_since + CALM;
        for at in 0..NAMES.len() {
            let from = match self.terms(at).map(|it| it.retention.unwrap_or_default()) {
                None => i64::MAX,
                Some(_) if !is_calm => i64::MIN,
                Some(0) => i64::MAX,
                Some(days) => today - i64::from(days),
            };
            let may_expire = &mut self.may_expire[at];
            *may_expire = if is_written {
                from
            } else {
                from.max(*may_expire)
            };
        }
    }

    /// Checks and notes what a commit lets expire.
    ///
    /// # Errors
    ///
    /// The archive expires too early.
    pub fn expires(&mut self, steps: &[Op]) -> Kept {
        for op in steps {
            let Op::Expire {
                handler, before, ..
            } = op
            else {
                continue;
            };
            let limit = self.may_expire[of(handler)];
            if *before > limit {
                return Err(format!(
                    "{handler} expires before day {before}, and not {limit}"
                ));
            }
            let name = handler.to_string();
            if *before == i64::MAX {
                *self.cleared.entry(name).or_default() += 1;
                continue;
            }
            let kept_from = self.kept_from.entry(name).or_insert(i64::MIN);
            *kept_from = (*kept_from).max(*before);
        }
        Ok(())
    }

    /// Checks that nothing is archived for too long: `first` is the first day in the archive of a handler, and nothing keeps the engine from letting it expire.
    ///
    /// # Errors
    ///
    /// That day is overdue.
    pub fn has_expired(&self, handler: &str, first: i64, boot: u64, wall: i64) -> Kept {
        let Some(terms) = self.terms(of(handler)) else {
            return Ok(());
        };
        let from = match terms.retention.unwrap_or_default() {
            0 => i64::MAX,
            days => wall.div_euclid(DAY) - i64::from(days),
        };
        match first < from && boot > self.calm_since + CALM {
            true => Err(format!(
                "what {handler} has archived on day {first} is to expire before day {from}"
            )),
            false => Ok(()),
        }
    }

    /// How often the complete archive of a handler had to expire.
    #[must_use]
    pub fn cleared(&self, handler: &str) -> u64 {
        self.cleared.get(handler).copied().unwrap_or_default()
    }

    /// Whether an archived timer of a handler is certainly kept.
    #[must_use]
    pub fn is_kept(&self, handler: &str, archived: Settled) -> bool {
        let kept_from = self.kept_from.get(handler).copied();
        let is_young = kept_from.is_none_or(|from| archived.wall.div_euclid(DAY) >= from);
        is_young && archived.cleared == self.cleared(handler)
    }
}
