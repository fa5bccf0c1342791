//! Checks of paused namespaces, and of calendars.

use std::collections::HashMap;

use super::timer::ON_ITS_WAY_MICROS;

/// The calendar has an occurrence a second.
const EACH_MICROS: i64 = 1_000_000;

#[derive(Debug, Clone, Default)]
pub(super) struct Service {
    /// Since when, in microseconds since the child's start.
    paused: HashMap<String, u64>,
    /// In which round an occurrence was delivered last, by its time.
    pub(super) occurred: HashMap<i64, u64>,
    /// The first and the last occurrence that came in time since the child's start, or since a move of the clock. All between them have to come.
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

    /// Another child does not know yet what is paused, and says so.
    pub(super) fn begins_again(&mut self) {
        self.paused.clear();
        self.is_moved();
    }

    /// The clock is moved: what is between the occurrences before and after that may be a misfire.
    pub(super) fn is_moved(&mut self) {
        self.calms.extend(self.calm.take());
    }

    /// The occurrences that did not come, and have an earlier and a later one that came in time.
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

    /// Whether a delivery of this handler at this time is one of a namespace that is paused, and not one that was on its way to the handler then.
    pub(super) fn is_paused(&self, handler: &str, at: u64) -> bool {
        let namespace = handler.split_once('/').map_or("default", |(name, _)| name);
        let since = self.paused.get(namespace);
        since.is_some_and(|since| at > since + ON_ITS_WAY_MICROS)
    }
}
