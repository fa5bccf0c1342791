//! What is said of a namespace that is paused, and of a calendar?

use std::collections::HashMap;

use super::delivery::ON_ITS_WAY_MICROS;
use super::{Checker, Rule};

/// The calendar has an occurrence a second.
const EACH_MICROS: i64 = 1_000_000;
/// An occurrence that is later than this may be from before the clock was moved, or from before a misfire. The engine takes a minute for a misfire.
const IN_TIME_MICROS: i64 = 30_000_000;

#[derive(Debug, Clone, Default)]
pub(super) struct Service {
    /// Since when, in microseconds since the child's start.
    paused: HashMap<String, u64>,
    /// In which round an occurrence was delivered last, by its time.
    occurred: HashMap<i64, u64>,
    /// The first and the last occurrence that came in time since the child's start, or since a move of the clock. All between them have to come.
    calm: Option<(i64, i64)>,
    /// The same, of earlier children and of the time before earlier moves.
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
    fn missing(&mut self) -> Vec<i64> {
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
    fn is_paused(&self, handler: &str, at: u64) -> bool {
        let namespace = handler.split_once('/').map_or("default", |(name, _)| name);
        let since = self.paused.get(namespace);
        since.is_some_and(|since| at > since + ON_ITS_WAY_MICROS)
    }
}

impl Checker {
    pub(super) fn is_not_paused(&mut self, id: u64, handler: &str, at: u64) {
        if self.service.is_paused(handler, at) {
            let text = format!("{id:x} of {handler} was delivered while that is paused");
            self.breaks(Rule::Other, text);
        }
    }

    /// An occurrence is delivered once, but for one that was in flight at a kill, and not before its time.
    pub(super) fn occurred(&mut self, at: u64, wall: i64, time: i64) {
        self.summary.occurrences += 1;
        if wall < time && !self.could_show(time, at) {
            let text = format!("the occurrence of {time} came {} us before", time - wall);
            self.breaks(Rule::Early, text);
        }
        let before = self.service.occurred.insert(time, self.round);
        if before == Some(self.round) {
            let text = format!("the occurrence of {time} was delivered before");
            self.breaks(Rule::Twice, text);
        }
        // A line may have been on its way while the clock was moved: its wall time is from before.
        let is_since = self.moved_at.is_some_and(|moved| at >= moved);
        if is_since && (0..IN_TIME_MICROS).contains(&(wall - time)) {
            let (first, last) = self.service.calm.unwrap_or((time, time));
            self.service.calm = Some((first.min(time), last.max(time)));
        }
    }

    /// The end: no occurrence is missing.
    pub(super) fn all_occurred(&mut self) {
        for time in self.service.missing() {
            let text = format!("the occurrence of {time} did not come");
            self.breaks(Rule::Lost, text);
        }
    }
}
