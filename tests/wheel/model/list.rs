//! The naive list: each timer with its deadline, and when the wheel must look at it.

use std::collections::BTreeMap;

use waterwheel::wheel::{Key, Resolution};

pub(super) struct List {
    pub(super) now: u64,
    second: u64,
    pub(super) timers: BTreeMap<u64, Timer>,
    pub(super) gone: Vec<Key>,
    filings: u64,
    /// Whether the hand was only moved in order, so that all timers come up by tick and then in the order of filing.
    pub(super) is_in_order: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timer {
    pub(super) key: Key,
    pub(super) deadline: u64,
    pub(super) disarmed: bool,
    /// The tick at which it comes up: if it was due when it was filed, that of the hand.
    pub(super) tick: u64,
    /// A number that grows with each filing.
    filed: u64,
    /// When its slot comes up. Unknown after an advance whose budget was too small: it is not guaranteed which of the
    /// timers cascade first.
    pub(super) comes_up: Option<u64>,
}

impl List {
    pub(super) fn new(resolution: Resolution, now: u64) -> List {
        List {
            now,
            second: u64::from(resolution.ticks_per_second()),
            timers: BTreeMap::new(),
            gone: Vec::new(),
            filings: 0,
            is_in_order: true,
        }
    }

    pub(super) fn file(&mut self, id: u64, key: Key, deadline: u64) {
        let timer = Timer {
            key,
            deadline,
            disarmed: false,
            tick: deadline.max(self.now),
            filed: self.filings,
            comes_up: Some(self.comes_up(deadline)),
        };
        self.timers.insert(id, timer);
        self.filings += 1;
    }

    /// Files a timer that came up in a call that has moved the hand since, and was postponed to a later tick.
    pub(super) fn file_postponed(&mut self, id: u64, key: Key, deadline: u64) {
        self.file(id, key, deadline);
        let timer = self.timers.get_mut(&id).expect("is there");
        (timer.tick, timer.comes_up) = (deadline, None);
    }

    /// Checks that this timer is the next to come up, if that is known.
    #[track_caller]
    pub(super) fn assert_next(&self, id: u64) {
        if self.is_in_order {
            let next = self.pending().min_by_key(|(_, it)| (it.tick, it.filed));
            assert_eq!(next.map(|(id, _)| id), Some(id), "the next one, in order");
        }
    }

    pub(super) fn disarm(&mut self, id: u64) {
        self.timers.get_mut(&id).expect("is there").disarmed = true;
    }

    pub(super) fn remove(&mut self, id: u64) {
        let timer = self.timers.remove(&id).expect("is there");
        self.gone.push(timer.key);
    }

    pub(super) fn pending(&self) -> impl Iterator<Item = (u64, Timer)> {
        let timers = self.timers.iter().filter(|(_, timer)| !timer.disarmed);
        timers.map(|(&id, &timer)| (id, timer))
    }

    /// The key and number of an existing timer, or a key that is gone.
    pub(super) fn pick(&self, which: usize) -> Option<(Key, Option<u64>)> {
        let (kind, which) = (which % 4, which / 4);
        if kind == 0 && !self.gone.is_empty() {
            return Some((self.gone[which % self.gone.len()], None));
        }
        let which = which.checked_rem(self.timers.len())?;
        let (&id, timer) = self.timers.iter().nth(which)?;
        Some((timer.key, Some(id)))
    }

    /// Notes that the hand has moved, and timers that came up on the dials above the first were filed again: all
    /// of them, if `whole`.
    pub(super) fn cascade(&mut self, whole: bool) {
        let came_up = |timer: &Timer| timer.comes_up.is_some_and(|tick| tick <= self.now);
        let ids = self.pending().filter(|(_, timer)| came_up(timer));
        let ids: Vec<u64> = ids.map(|(id, _)| id).collect();
        for id in ids {
            let deadline = self.timers[&id].deadline;
            let comes_up = whole.then(|| self.comes_up(deadline));
            self.timers.get_mut(&id).expect("is there").comes_up = comes_up;
        }
    }

    /// Notes that timers that came up by `to` were filed again, from an unknown position of the hand.
    pub(super) fn cascade_in_order(&mut self, to: u64) {
        for timer in self.timers.values_mut() {
            timer.comes_up = timer.comes_up.filter(|&tick| tick > to);
        }
    }

    /// When the wheel must be advanced next, if no timer waits to be served. The flag says whether that is exact; if
    /// not, it is the latest possible tick.
    pub(super) fn next_expiration(&self) -> Option<(u64, bool)> {
        let pending = || self.pending().map(|(_, timer)| timer);
        let latest = pending().map(|timer| timer.comes_up.unwrap_or(timer.deadline));
        Some((
            latest.min()?,
            pending().all(|timer| timer.comes_up.is_some()),
        ))
    }

    /// When the wheel looks at a timer that is filed now: at the start of the unit of its slot, or, if it lies beyond
    /// the last dial, at the start of that dial's next revolution.
    fn comes_up(&self, deadline: u64) -> u64 {
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
        let revolution = 64 * 86_400 * second;
        (now / revolution + 1).saturating_mul(revolution)
    }
}
