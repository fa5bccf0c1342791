//! How does a delivery end?

use std::sync::Arc;
use std::time::Duration;

use waterwheel_durable_core::engine::Delivery;
use waterwheel_durable_core::store::Ended;

use super::{DAY, RETRY_DELAYS, World};
use crate::model::Settled;
use crate::namespaces::of;

impl World {
    /// Ends a running delivery, successfully or not. If it was on its way, it arrives first.
    pub(super) fn end_delivery(&mut self) -> Result<(), String> {
        if self.with_handlers.is_empty() {
            return Ok(());
        }
        let which = self.rng.usize(0..self.with_handlers.len());
        let row = self.with_handlers.swap_remove(which);
        let at = self.on_their_way.remove(&row.id);
        if let Some(at) = at.filter(|_| row.due.as_millis() * 1_000 > self.now.wall_micros) {
            self.withdraw(Delivery { row, at });
            return Ok(());
        }
        let fate = if self.is_ending {
            9
        } else {
            self.rng.u32(0..10)
        };
        let ended = match fate {
            0..3 => Ended::Failed(Arc::from("no")),
            3 => Ended::Dead(Arc::from("never")),
            4 => Ended::Snoozed(Duration::from_micros(self.rng.u64(..200_000_000))),
            _ => Ended::Well,
        };
        self.tell(|| format!("end the delivery of {}: {ended:?}", row.id));
        let terms = self.namespaces.terms(of(&row.handler));
        let is_archived = terms.map(|it| it.retention.is_some_and(|days| days > 0));
        let delays = terms.map(|it| it.delays(row.failures, &RETRY_DELAYS));
        let is_retried = self.engine.handle_ended(row.id, ended.clone());
        if let (Ended::Failed(_), Some(delays)) = (&ended, delays)
            && is_retried != delays.is_some()
        {
            return Err(format!(
                "tried again: {is_retried}, and not {delays:?}: {row:?}"
            ));
        }
        let snoozed = match ended {
            Ended::Snoozed(delay) => Some(delay.as_micros() as i64),
            _ => None,
        };
        let comes_back = is_retried || snoozed.is_some();
        let is_given_up = !comes_back && ended != Ended::Well;
        if row.id.occurrence().is_some() {
            self.calendars.ended(&row, !comes_back, is_given_up);
            return Ok(());
        }
        if comes_back {
            // The engine's time is that of its last turn.
            let from = self.now.wall_micros.div_euclid(1_000) * 1_000;
            let (min, max) = match snoozed {
                Some(delay) => (delay, delay + 1_000),
                None => delays.flatten().unwrap_or((0, DAY)),
            };
            let within = (from + min, from + max);
            self.model.comes_back(row.id, is_retried, within);
            return Ok(());
        }
        self.model.ended(row.id, is_given_up);
        self.archives = true;
        if !is_given_up {
            let at = Settled {
                wall: self.now.wall_micros,
                cleared: self.namespaces.cleared(&row.handler),
            };
            self.model.settles(row.id, is_archived, at);
        }
        Ok(())
    }

    /// Withdraws a delivery that was on its way when the clock was set back: its handler is not called.
    fn withdraw(&mut self, delivery: Delivery) {
        let row = &delivery.row;
        match row.id.occurrence() {
            Some(_) => self.calendars.withdrawn(row.id),
            None => self.model.withdrawn(row),
        }
        self.namespaces.withdrawn(&row.handler, delivery.at);
        self.shares.clear();
        self.engine.handle_withdrawn(&delivery);
    }
}
