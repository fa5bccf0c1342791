//! Checks of paused namespaces, and of calendars.

use std::collections::HashMap;

use super::timer::ON_ITS_WAY_MICROS;

/// The period of the calendar.
const EACH_MICROS: i64 = 1_000_000;

#[derive(Debug, Clone, Default)]
pub(super) struct Service {
    /// When each namespace was paused, in microseconds since the child's start.
    paused: HashMap<String, u64>,
    /// The round in which each occurrence was last delivered, by its time.
    pub(super) occurred: HashMap<i64, u64>,
    /// The first and the last occurrence that came in time since the child's start or the last move of the clock. All between them must come.
    pub(super) calm: Option<(i64, i64)>,
    /// The calm periods of earlier children and of the time before earlier moves.
    calms: Vec<(i64, i64)>,
}

impl Service {
    pub(super) fn paused(&mut self, namespace: String, at: u64) {
        self.paused.insert(namespace, at);
    }

    pub(super) fn resumes(&mut self, namespace: &str) {
        self.paused.remove(namespace);
    }

    /// Forgets which namespaces are paused: the next child does not know yet, and will report it.
    pub(super) fn begins_again(&mut self) {
        self.paused.clear();
        self.is_moved();
    }

    /// Notes that the clock is moved: occurrences between the last one before and the first one after it may be a misfire.
    pub(super) fn is_moved(&mut self) {
        self.calms.extend(self.calm.take());
    }

    /// Returns the occurrences that did not come although an earlier and a later one came in time.
    pub(super) fn missing(&mut self) -> Vec<i64> {
        self.is_moved();
        let mut missing = Vec::new();
        for &(first, last) in &self.calms {
            let mut time = first;
            while time < last {
                if !self.occurred.contains_key(&time) {
                    missing.push(time);
                }
                time += EACH_MICROS;
            }
        }
        missing
    }

    /// Whether this handler's namespace was paused, and a delivery at this time was not already on its way to the handler.
    pub(super) fn is_paused(&self, handler: &str, at: u64) -> bool {
        let namespace = handler.split_once('/').map_or("default", |(name, _)| name);
        let since = self.paused.get(namespace);
        since.is_some_and(|since| at > since + ON_ITS_WAY_MICROS)
    }
}
