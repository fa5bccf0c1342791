//! Declares and removes calendars, and checks them at the end.

use std::sync::Arc;

use super::{HANDLERS, World};
use crate::beat::Beat;

/// The maximum number of calendars.
const NAMES: usize = 3;

/// Some calendars occur often, some seldom.
const PERIODS: [i64; 4] = [20, 60, 3_600, 86_400];

/// The catch-up limits: no more are filed at once than end within a life.
const MAX: [u32; 4] = [0, 1, 3, 40];

impl World {
    /// Lets a caller declare a calendar, new, changed or unchanged; or remove it.
    pub(super) fn ask_for_calendar(&mut self) {
        let name = self.rng.usize(0..NAMES);
        let before = self.calendars.beat(name);
        let beat = match (self.rng.u32(0..10), before) {
            (0, _) => return self.remove_calendar(name),
            (1..4, Some(before)) => before,
            (4..7, Some(before)) => Beat {
                period: before.period,
                ..self.some_beat()
            },
            _ => self.some_beat(),
        };
        let token = self.calendars.declares(name, beat, self.now.wall_micros);
        let plan = beat.plan(name, self.ahead, &HANDLERS);
        self.engine
            .handle_calendar(token, &Arc::from(name.to_string()), Some(plan));
    }

    fn some_beat(&mut self) -> Beat {
        self.versions += 1;
        Beat {
            version: self.versions,
            period: PERIODS[self.rng.usize(0..PERIODS.len())],
            limit: MAX[self.rng.usize(0..MAX.len())],
            handler: self.rng.usize(0..HANDLERS.len()),
        }
    }

    fn remove_calendar(&mut self, name: usize) {
        let token = self.calendars.removes(name);
        self.engine
            .handle_calendar(token, &Arc::from(name.to_string()), None);
    }

    /// Possibly changes the zone database for the next process.
    pub(super) fn change_zone(&mut self) {
        if self.has_calendars && self.rng.u32(0..8) == 0 {
            let by = if self.rng.bool() { 3_600 } else { -3_600 };
            self.ahead += by;
            self.calendars.rules_change(by.abs());
        }
    }

    /// Checks the calendars when nothing is running and their last occurrences were filed. Then removes them, so that the life ends.
    pub(super) fn end_calendars(&mut self) -> Result<(), String> {
        let behind = self.calendars.latest() - self.now.wall_micros;
        if behind > 0 {
            self.pass(behind.unsigned_abs());
            return Ok(());
        }
        let second = self.now.wall_micros.div_euclid(1_000_000);
        self.calendars.is_complete(second, self.ahead)?;
        for name in 0..NAMES {
            self.remove_calendar(name);
        }
        Ok(())
    }
}
