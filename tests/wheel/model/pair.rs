//! The wheel and the list side by side.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::thread;

use waterwheel::wheel::{Resolution, Tick, Wheel};

use super::list::List;
use super::{Op, Says};

/// A payload whose drop may panic, once, without a message.
#[derive(Debug)]
pub(super) struct Payload {
    pub(super) id: u64,
    bomb: bool,
    /// Whether a judge that was asked in order has postponed it.
    pub(super) was_postponed: bool,
    /// The number of existing payloads.
    alive: Rc<Cell<usize>>,
}

pub(super) struct Boom;

impl Drop for Payload {
    fn drop(&mut self) {
        self.alive.set(self.alive.get() - 1);
        if self.bomb && !thread::panicking() {
            panic::resume_unwind(Box::new(Boom));
        }
    }
}

/// The result of a step; `None` if a [`Boom`] ended it.
pub(super) fn survive<R>(step: impl FnOnce() -> R) -> Option<R> {
    match panic::catch_unwind(AssertUnwindSafe(step)) {
        Ok(result) => Some(result),
        Err(panic) if panic.is::<Boom>() => None,
        Err(panic) => panic::resume_unwind(panic),
    }
}

pub(super) struct Pair {
    pub(super) wheel: Wheel<Payload>,
    pub(super) list: List,
    pub(super) inserted: u64,
    pub(super) alive: Rc<Cell<usize>>,
}

impl Pair {
    pub(super) fn new(resolution: Resolution, start: u64) -> Pair {
        Pair {
            wheel: Wheel::starting_at(resolution, Tick::new(start)),
            list: List::new(resolution, start),
            inserted: 0,
            alive: Rc::default(),
        }
    }

    pub(super) fn apply(&mut self, op: &Op) {
        let now = self.list.now;
        match *op {
            Op::Insert { delay, bomb } => self.insert(now.saturating_add(delay), bomb),
            Op::Herd { delay, count } => {
                for _ in 0..count {
                    self.insert(now.saturating_add(delay), false);
                }
            }
            Op::InsertPast { ago } => self.insert(now.saturating_sub(ago), false),
            Op::Cancel { which } => self.cancel(which),
            Op::Reset { which, delay } => self.reset(which, |_| now.saturating_add(delay)),
            Op::ResetEarlier { which, by } => self.reset(which, |own| own.saturating_sub(by)),
            Op::ResetLater { which, by } => self.reset(which, |own| own.saturating_add(by)),
            Op::Disarm { which } => self.disarm(which),
            Op::SkipTo { by } => self.skip_to(now.saturating_add(by)),
            Op::Advance { by, budget, says } => {
                self.advance(now.saturating_add(by), budget, says);
            }
            Op::AdvanceInOrder { by, budget, says } => {
                self.advance_in_order(now.saturating_add(by), budget, says);
            }
            Op::Expire {
                by,
                budget,
                taken,
                forget,
            } => self.expire(now.saturating_add(by), budget, taken, forget),
            Op::ExpirePeeked => {
                let Some((_, deadline, _)) = self.wheel.peek() else {
                    return;
                };
                self.expire(deadline.get(), usize::MAX, 1, false);
            }
            Op::Turn { by, batch, wakes } => self.turn(now.saturating_add(by), batch, wakes),
            Op::AdvanceToExpiration => {
                let Some(next) = self.wheel.next_expiration().map(Tick::get) else {
                    return;
                };
                self.advance(next.saturating_sub(1), usize::MAX, Says::Due);
                self.check();
                self.advance(next, usize::MAX, Says::Due);
            }
            Op::ClockBack { by, budget } => {
                self.skip_to(now.saturating_sub(by));
                self.check();
                self.advance(now.saturating_sub(by), budget, Says::Due);
            }
            Op::Drain { taken } => self.drain(taken),
            Op::Clear => self.clear(),
            Op::Reserve { additional } => {
                let there = self.list.timers.len() + usize::from(additional);
                self.wheel.reserve(additional.into());
                assert!(self.wheel.capacity() >= there, "room for {there}");
            }
            Op::ShrinkToFit => {
                self.wheel.shrink_to_fit();
                let is_empty = self.list.timers.is_empty();
                assert!(!is_empty || self.wheel.capacity() == 0, "nothing is there");
            }
            Op::Replace { start } => self.replace(start),
        }
    }

    pub(super) fn insert(&mut self, deadline: u64, bomb: bool) {
        let id = self.inserted;
        self.inserted += 1;
        self.alive.set(self.alive.get() + 1);
        let payload = Payload {
            id,
            bomb,
            was_postponed: false,
            alive: Rc::clone(&self.alive),
        };
        let key = self.wheel.insert(Tick::new(deadline), payload);
        self.list.file(id, key, deadline);
    }

    pub(super) fn cancel(&mut self, which: usize) {
        let Some((key, id)) = self.list.pick(which) else {
            return;
        };
        let payload = self.wheel.cancel(key);
        assert_eq!(payload.as_ref().map(|payload| payload.id), id, "cancelled");
        survive(|| drop(payload));
        if let Some(id) = id {
            self.list.remove(id);
        }
    }

    pub(super) fn reset(&mut self, which: usize, deadline: impl FnOnce(u64) -> u64) {
        let Some((key, id)) = self.list.pick(which) else {
            return;
        };
        let own = self.wheel.deadline(key).unwrap_or_default();
        let deadline = deadline(own.get());
        let moved = self.wheel.reset(key, Tick::new(deadline));
        assert_eq!(moved, id.is_some(), "reset");
        if let Some(id) = id {
            self.list.file(id, key, deadline);
        }
    }

    fn disarm(&mut self, which: usize) {
        let Some((key, id)) = self.list.pick(which) else {
            return;
        };
        let pending = id.is_some_and(|id| !self.list.timers[&id].disarmed);
        assert_eq!(self.wheel.disarm(key), pending, "disarmed");
        if let Some(id) = id {
            self.list.disarm(id);
        }
    }

    fn skip_to(&mut self, to: u64) {
        let next = self.wheel.next_expiration();
        let quiet = match self.list.pending().next() {
            Some(_) => self.wheel.quiet_until().get(),
            None => u64::MAX,
        };
        self.wheel.skip_to(Tick::new(to));
        assert_eq!(
            self.wheel.next_expiration(),
            next,
            "nothing comes up by skipping"
        );
        self.list.now = to.min(quiet.saturating_sub(1)).max(self.list.now);
    }

    pub(super) fn drain(&mut self, taken: usize) {
        let mut drained = self.wheel.drain();
        let there: Vec<u64> = self.list.timers.keys().copied().collect();
        for _ in 0..taken.min(there.len()) {
            let mut payload = drained.next().expect("there is more");
            payload.bomb = false;
            assert!(there.contains(&payload.id), "{payload:?} was not there");
        }
        if taken >= there.len() {
            assert!(drained.next().is_none(), "more than there was");
        }
        survive(|| drop(drained));
        for id in there {
            self.list.remove(id);
        }
    }

    /// Clears both. A bomb costs the memory, and nothing else.
    fn clear(&mut self) {
        let capacity = self.wheel.capacity();
        if survive(|| self.wheel.clear()).is_some() {
            assert_eq!(self.wheel.capacity(), capacity, "the memory is kept");
        }
        for id in Vec::from_iter(self.list.timers.keys().copied()) {
            self.list.remove(id);
        }
    }

    fn replace(&mut self, start: u64) {
        let resolution = self.wheel.resolution();
        let new = Wheel::starting_at(resolution, Tick::new(start));
        let old = std::mem::replace(&mut self.wheel, new);
        survive(|| drop(old));
        self.list = List::new(resolution, start);
    }
}
