//! The wheel and the list side by side.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::thread;

use waterwheel::wheel::{Key, Resolution, Tick, Verdict, Wheel};

use super::list::List;
use super::{Op, Says, Wakes};

/// A payload whose drop may panic, once, without a message.
#[derive(Debug)]
struct Payload {
    id: u64,
    bomb: bool,
    /// How many of them there are.
    alive: Rc<Cell<usize>>,
}

struct Boom;

impl Drop for Payload {
    fn drop(&mut self) {
        self.alive.set(self.alive.get() - 1);
        if self.bomb && !thread::panicking() {
            panic::resume_unwind(Box::new(Boom));
        }
    }
}

/// What a step came to; `None` if it was cut short by a [`Boom`].
fn survive<R>(step: impl FnOnce() -> R) -> Option<R> {
    match panic::catch_unwind(AssertUnwindSafe(step)) {
        Ok(result) => Some(result),
        Err(panic) if panic.is::<Boom>() => None,
        Err(panic) => panic::resume_unwind(panic),
    }
}

/// How many timers may cascade for each that may be served.
const CASCADES_PER_FIRE: u64 = 8;

/// How many of the keys that are gone are looked at after each step.
const RECENT: usize = 32;

pub(super) struct Pair {
    wheel: Wheel<Payload>,
    list: List,
    inserted: u64,
    alive: Rc<Cell<usize>>,
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
            Op::Replace { start } => self.replace(start),
        }
    }

    fn insert(&mut self, deadline: u64, bomb: bool) {
        let id = self.inserted;
        self.inserted += 1;
        self.alive.set(self.alive.get() + 1);
        let payload = Payload {
            id,
            bomb,
            alive: Rc::clone(&self.alive),
        };
        let key = self.wheel.insert(Tick::new(deadline), payload);
        self.list.file(id, key, deadline);
    }

    fn cancel(&mut self, which: usize) {
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

    fn reset(&mut self, which: usize, deadline: impl FnOnce(u64) -> u64) {
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

    /// What a driver does, and the tasks that it wakes.
    fn turn(&mut self, to: u64, batch: usize, wakes: Wakes) {
        let batch = batch.max(1);
        // Those that are disarmed may be moved into the turn, by what comes up in it.
        let (first_new, there) = (self.inserted, self.list.timers.len());
        let mut batches = 0;
        loop {
            let handed = self.advance(to, batch, Says::Due);
            self.check();
            // Those that are inserted in this turn do not go on for ever.
            for _ in handed.iter().filter(|&&id| id < first_new) {
                let now = self.list.now;
                match wakes {
                    Wakes::Insert { delay } => self.insert(now.saturating_add(delay), false),
                    Wakes::Cancel { which } => self.cancel(which),
                    Wakes::Reset { which, delay } => {
                        self.reset(which, |_| now.saturating_add(delay));
                    }
                }
                self.check();
            }
            if !self.wheel.has_backlog() {
                return;
            }
            batches += 1;
            let inserted = (self.inserted - first_new) as usize;
            assert!(batches <= 2 * (there + inserted) + 2, "a turn without end");
        }
    }

    /// Gives the numbers of those that were handed out.
    fn advance(&mut self, to: u64, budget: usize, says: Says) -> Vec<u64> {
        let next = self.wheel.next_expiration().map(Tick::get);
        let idle = !self.wheel.has_backlog();
        let cascaded = self.wheel.cascaded();
        let hand = to.max(self.list.now);
        let there = self.wheel.len();
        let (mut judged, mut handed) = (Vec::new(), Vec::new());
        let progress = survive(|| {
            let judge = |key, deadline, payload: &mut Payload| {
                let verdict = match says {
                    _ if payload.id % 2 == 0 => Verdict::Due,
                    Says::Due => Verdict::Due,
                    Says::Postpone { by } => Verdict::Postpone(Tick::new(hand.saturating_add(by))),
                    Says::Disarm => Verdict::Disarm,
                    Says::Panic => panic::resume_unwind(Box::new(Boom)),
                };
                assert!(judged.len() < there, "a timer comes up again and again");
                judged.push((payload.id, key, deadline, verdict));
                verdict
            };
            let due = |deadline: Tick, payload: Payload| handed.push((deadline, payload.id));
            self.wheel.advance(Tick::new(to), budget, judge, due)
        });

        self.list.now = hand;
        assert!(judged.len() <= budget, "the budget is respected");
        self.list
            .cascade(progress.is_some_and(|done| !done.backlog));
        let mut in_hand = handed.iter();
        let mut postponed = 0;
        for &(id, key, deadline, verdict) in &judged {
            let timer = *self.list.timers.get(&id).expect("judged and not there");
            assert!(!timer.disarmed, "disarmed, and judged");
            assert_eq!((timer.key, Tick::new(timer.deadline)), (key, deadline));
            assert!(
                timer.deadline <= hand,
                "{timer:?} comes up early, at {hand}"
            );
            match verdict {
                Verdict::Postpone(later) if later.get() > hand => {
                    self.list.file(id, key, later.get());
                    postponed += 1;
                }
                Verdict::Disarm => self.list.disarm(id),
                Verdict::Postpone(_) | Verdict::Due => {
                    assert_eq!(in_hand.next(), Some(&(deadline, id)), "handed out");
                    self.list.remove(id);
                }
            }
        }
        assert_eq!(in_hand.next(), None, "handed out and not judged");

        // The rest is known only if nothing panicked.
        let handed = handed.iter().map(|&(_, id)| id).collect();
        let Some(progress) = progress else {
            return handed;
        };
        assert_eq!(progress.fired, judged.len() - postponed);
        assert_eq!(progress.postponed, postponed);
        assert_eq!(progress.backlog, self.wheel.has_backlog());
        let cascaded = self.wheel.cascaded() - cascaded;
        let cascades = (budget as u64).saturating_mul(CASCADES_PER_FIRE);
        assert!(cascaded <= cascades, "the budget is respected");
        assert!(
            !progress.backlog || judged.len() == budget || cascaded == cascades,
            "there is a backlog, and budget left"
        );
        assert!(!progress.backlog || budget < usize::MAX, "a backlog");
        if idle && budget > 0 {
            let came_up = next.is_some_and(|next| next <= hand);
            assert_eq!(
                !judged.is_empty() || cascaded > 0,
                came_up,
                "there is something to do exactly from the next expiration on"
            );
        }
        let next = self.wheel.next_expiration().unwrap_or(Tick::MAX);
        assert_eq!(self.wheel.quiet_until(), next, "exact after an advance");
        handed
    }

    /// `tests/wheel/order.rs` looks at the order among equals.
    fn advance_in_order(&mut self, to: u64, budget: usize, says: Says) {
        let to = to.max(self.list.now);
        let (mut judged, mut handed) = (Vec::new(), Vec::new());
        let progress = survive(|| {
            let judge = |key, deadline: Tick, payload: &mut Payload| {
                let verdict = match says {
                    _ if payload.id % 2 == 0 => Verdict::Due,
                    Says::Due => Verdict::Due,
                    // Not within this call: it would come up again and again.
                    Says::Postpone { by } => match to.saturating_add(by) {
                        later if later > to => Verdict::Postpone(Tick::new(later)),
                        _ => Verdict::Due,
                    },
                    Says::Disarm => Verdict::Disarm,
                    Says::Panic => panic::resume_unwind(Box::new(Boom)),
                };
                judged.push((payload.id, key, deadline, verdict));
                verdict
            };
            let due = |deadline: Tick, payload: Payload| handed.push((deadline, payload.id));
            self.wheel
                .advance_in_order(Tick::new(to), budget, judge, due)
        });

        let before = std::mem::replace(&mut self.list.now, self.wheel.now().get());
        assert!(before <= self.list.now && self.list.now <= to, "the hand");
        assert!(judged.len() <= budget, "the budget is respected");
        self.list.cascade_in_order(to);
        let mut in_hand = handed.iter();
        let mut latest = 0;
        for &(id, key, deadline, verdict) in &judged {
            let timer = *self.list.timers.get(&id).expect("judged and not there");
            assert!(!timer.disarmed, "disarmed, and judged");
            assert_eq!((timer.key, Tick::new(timer.deadline)), (key, deadline));
            assert!(timer.deadline <= self.list.now, "{timer:?} comes up early");
            if timer.deadline > before {
                // What was due before may wait in no order.
                assert!(latest <= timer.deadline, "{timer:?} comes up late");
                latest = timer.deadline;
            }
            match verdict {
                Verdict::Postpone(later) if later.get() > self.list.now => {
                    self.list.file(id, key, later.get());
                    self.list.forget_comes_up(id);
                }
                Verdict::Disarm => self.list.disarm(id),
                Verdict::Postpone(_) | Verdict::Due => {
                    assert_eq!(in_hand.next(), Some(&(deadline, id)), "handed out");
                    self.list.remove(id);
                }
            }
        }
        assert_eq!(in_hand.next(), None, "handed out and not judged");
        if let Some(progress) = progress {
            assert_eq!(progress.backlog, self.wheel.has_backlog());
            assert!(!progress.backlog || budget < usize::MAX, "a backlog");
            assert!(progress.backlog || self.list.now == to, "the hand stopped");
        }
    }

    fn drain(&mut self, taken: usize) {
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

    fn replace(&mut self, start: u64) {
        let resolution = self.wheel.resolution();
        let new = Wheel::starting_at(resolution, Tick::new(start));
        let old = std::mem::replace(&mut self.wheel, new);
        survive(|| drop(old));
        self.list = List::new(resolution, start);
    }

    pub(super) fn check(&self) {
        let (wheel, list) = (&self.wheel, &self.list);
        wheel.check_invariants();
        assert_eq!(wheel.now().get(), list.now);

        let mut listed: Vec<_> = wheel
            .iter()
            .map(|(key, deadline, payload)| (payload.id, key, deadline.get()))
            .collect();
        listed.sort_unstable_by_key(|&(id, ..)| id);
        let pending: Vec<_> = list
            .pending()
            .map(|(id, timer)| (id, timer.key, timer.deadline))
            .collect();
        assert_eq!(listed, pending, "the pending timers");
        assert_eq!(wheel.len(), pending.len());
        assert_eq!(wheel.is_empty(), pending.is_empty());
        assert_eq!(self.alive.get(), list.timers.len(), "payloads kept alive");

        for (&id, timer) in &list.timers {
            assert_eq!(wheel.get(timer.key).map(|payload| payload.id), Some(id));
            assert_eq!(wheel.deadline(timer.key), Some(Tick::new(timer.deadline)));
            assert_eq!(wheel.is_pending(timer.key), !timer.disarmed);
        }
        // Those of before are looked at again in the end: at each step they would be most of the work.
        let recent = list.gone.len().saturating_sub(RECENT);
        self.check_gone(&list.gone[recent..]);
        self.check_next_expiration();
    }

    fn check_gone(&self, keys: &[Key]) {
        for &key in keys {
            assert!(self.wheel.get(key).is_none(), "{key:?} is gone");
            assert_eq!(self.wheel.deadline(key), None, "{key:?} is gone");
            assert!(!self.wheel.is_pending(key), "{key:?} is gone");
        }
    }

    fn check_next_expiration(&self) {
        let next = self.wheel.next_expiration().map(Tick::get);
        let now = self.list.now;
        let mut pending = self.list.pending().map(|(_, timer)| timer);
        if self.wheel.has_backlog() {
            assert_eq!(next, Some(now), "something waits to be served");
            let waits = pending.any(|timer| timer.comes_up.is_none_or(|tick| tick <= now));
            assert!(waits, "nothing has come up, and there is a backlog");
            return;
        }
        let overdue = pending.find(|timer| timer.deadline <= now);
        assert_eq!(overdue, None, "waits to be served, and is no backlog");
        match (next, self.list.next_expiration()) {
            (Some(next), Some((latest, false))) => {
                assert!(
                    now < next && next <= latest,
                    "{next} is not before {latest}"
                );
            }
            (next, known) => assert_eq!(next, known.map(|(exact, _)| exact), "the next expiration"),
        }
    }

    /// Nothing is lost: at the end of time everything comes up, and the disarmed are still there.
    pub(super) fn finish(mut self) {
        // Each bomb ends an advance.
        let bombs_at_most = self.list.timers.len();
        for _ in 0..=bombs_at_most {
            self.advance(u64::MAX, usize::MAX, Says::Due);
            self.check();
            if self.wheel.is_empty() {
                break;
            }
        }
        assert_eq!(self.wheel.next_expiration(), None, "time has ended");
        self.drain(usize::MAX);
        self.check();
        self.check_gone(&self.list.gone);
    }
}
