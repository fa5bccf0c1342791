//! The naive list: every timer with its deadline, and when the wheel is to look at it.

use std::collections::BTreeMap;

use waterwheel::wheel::{Key, Resolution};

pub(super) struct List {
    pub(super) now: u64,
    second: u64,
    pub(super) timers: BTreeMap<u64, Timer>,
    pub(super) gone: Vec<Key>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timer {
    pub(super) key: Key,
    pub(super) deadline: u64,
    pub(super) parked: bool,
    /// When its slot comes up. Not known after an advance whose budget did not reach: the timers that came
    /// up are cascaded in no promised order.
    pub(super) turn: Option<u64>,
}

impl List {
    pub(super) fn new(resolution: Resolution, now: u64) -> List {
        List {
            now,
            second: u64::from(resolution.ticks_per_second()),
            timers: BTreeMap::new(),
            gone: Vec::new(),
        }
    }

    pub(super) fn file(&mut self, id: u64, key: Key, deadline: u64) {
        let timer = Timer {
            key,
            deadline,
            parked: false,
            turn: Some(self.turn_of(deadline)),
        };
        self.timers.insert(id, timer);
    }

    pub(super) fn park(&mut self, id: u64) {
        self.timers.get_mut(&id).expect("is there").parked = true;
    }

    pub(super) fn remove(&mut self, id: u64) {
        let timer = self.timers.remove(&id).expect("is there");
        self.gone.push(timer.key);
    }

    pub(super) fn pending(&self) -> impl Iterator<Item = (u64, Timer)> {
        let timers = self.timers.iter().filter(|(_, timer)| !timer.parked);
        timers.map(|(&id, &timer)| (id, timer))
    }

    /// A key that is there, with the number of its timer, or one that is gone.
    pub(super) fn pick(&self, which: usize) -> Option<(Key, Option<u64>)> {
        let (kind, which) = (which % 4, which / 4);
        if kind == 0 && !self.gone.is_empty() {
            return Some((self.gone[which % self.gone.len()], None));
        }
        let which = which.checked_rem(self.timers.len())?;
        let (&id, timer) = self.timers.iter().nth(which)?;
        Some((timer.key, Some(id)))
    }

    /// The hand has moved, and what came up on the dials above the first has been filed again: all of
    /// it, if `whole`.
    pub(super) fn cascade(&mut self, whole: bool) {
        let came_up = |timer: &Timer| timer.turn.is_some_and(|turn| turn <= self.now);
        let ids = self.pending().filter(|(_, timer)| came_up(timer));
        let ids: Vec<u64> = ids.map(|(id, _)| id).collect();
        for id in ids {
            let deadline = self.timers[&id].deadline;
            let turn = whole.then(|| self.turn_of(deadline));
            self.timers.get_mut(&id).expect("is there").turn = turn;
        }
    }

    /// What came up by `to` has been filed again, from wherever the hand stood then.
    pub(super) fn cascade_in_order(&mut self, to: u64) {
        for timer in self.timers.values_mut() {
            timer.turn = timer.turn.filter(|&turn| turn > to);
        }
    }

    /// It is not known when the wheel is to look at this timer.
    pub(super) fn forget_turn(&mut self, id: u64) {
        self.timers.get_mut(&id).expect("is there").turn = None;
    }

    /// When the wheel is to be turned next, if nothing waits to be served: exactly, or, if that is
    /// not known, at the latest.
    pub(super) fn next_turn(&self) -> Option<(u64, bool)> {
        let pending = || self.pending().map(|(_, timer)| timer);
        let latest = pending().map(|timer| timer.turn.unwrap_or(timer.deadline));
        Some((latest.min()?, pending().all(|timer| timer.turn.is_some())))
    }

    /// When a timer that is filed now is looked at: a dial's slot comes up at the start of its unit,
    /// and what lies beyond the last dial at that dial's next full turn.
    fn turn_of(&self, deadline: u64) -> u64 {
        let (now, second) = (self.now, self.second);
        if deadline <= now {
            return now;
        }
        if deadline - now <= second {
            return deadline;
        }
        let dials = [(1, 60), (60, 60), (3_600, 24), (86_400, 64)];
        for (length, slots) in dials.map(|(seconds, slots)| (seconds * second, slots)) {
            if deadline / length - now / length <= slots {
                return deadline / length * length;
            }
        }
        let turn = 64 * 86_400 * second;
        (now / turn + 1).saturating_mul(turn)
    }
}
