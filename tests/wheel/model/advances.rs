//! The ways to move the hand, on the wheel and on the list.

use std::mem;
use std::panic;

use waterwheel::wheel::{Tick, Verdict};

use super::pair::{Boom, Pair, Payload, survive};
use super::{Says, Wakes};

/// The number of timers that may cascade for each that may be served.
const CASCADES_PER_FIRE: u64 = 8;

impl Pair {
    /// Acts as a driver does, and as the tasks do that it wakes.
    pub(super) fn turn(&mut self, to: u64, batch: usize, wakes: Wakes) {
        let batch = batch.max(1);
        // Disarmed timers count: timers that come up may move them into the turn.
        let (first_new, there) = (self.inserted, self.list.timers.len());
        let mut batches = 0;
        loop {
            let handed = self.advance(to, batch, Says::Due);
            self.check();
            // A timer that was inserted in this turn inserts no other, so that the turn ends.
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

    /// Returns the numbers of the timers that were handed out.
    pub(super) fn advance(&mut self, to: u64, budget: usize, says: Says) -> Vec<u64> {
        let next = self.wheel.next_expiration().map(Tick::get);
        let idle = !self.wheel.has_backlog();
        let cascaded = self.wheel.cascaded();
        let hand = to.max(self.list.now);
        let there = self.wheel.len();
        self.list.is_in_order = false;
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
        assert_eq!(progress.expired, judged.len() - postponed);
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

    /// A judge that postpones a timer for the first time does so from the timer's deadline, which may be within this call. After
    /// that, to a tick beyond this call, or it would come up again and again.
    pub(super) fn advance_in_order(&mut self, to: u64, budget: usize, says: Says) {
        let to = to.max(self.list.now);
        let (mut judged, mut handed) = (Vec::new(), Vec::new());
        let progress = survive(|| {
            let judge = |key, deadline: Tick, payload: &mut Payload| {
                let verdict = match says {
                    _ if payload.id % 2 == 0 => Verdict::Due,
                    Says::Due => Verdict::Due,
                    Says::Postpone { by } if !mem::replace(&mut payload.was_postponed, true) => {
                        Verdict::Postpone(Tick::new(deadline.get().saturating_add(by)))
                    }
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

        let before = mem::replace(&mut self.list.now, self.wheel.now().get());
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
            self.list.assert_next(id);
            if timer.deadline > before {
                // Timers that were due before may wait in any order.
                assert!(latest <= timer.deadline, "{timer:?} comes up late");
                latest = timer.deadline;
            }
            match verdict {
                Verdict::Postpone(later) if later.get() > timer.deadline.max(before) => {
                    self.list.file_postponed(id, key, later.get());
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

    /// Takes at most `taken` items, and then drops the iterator or forgets it.
    pub(super) fn expire(&mut self, to: u64, budget: usize, taken: usize, forget: bool) {
        let to = to.max(self.list.now);
        let cascaded = self.wheel.cascaded();
        let peeked = self.wheel.peek().map(|(_, deadline, _)| deadline.get());
        let (mut items, mut is_over) = (Vec::new(), false);
        survive(|| {
            let mut expire = self.wheel.expire(Tick::new(to), budget);
            while !is_over && items.len() < taken {
                match expire.next() {
                    Some((key, deadline, payload)) => {
                        items.push((payload.id, key, deadline));
                        // If this panics, the iterator is dropped on the way out.
                        drop(payload);
                    }
                    None => {
                        is_over = true;
                        assert!(expire.next().is_none(), "an item after the end");
                    }
                }
            }
            if forget {
                mem::forget(expire);
            }
        });
        self.list.is_in_order &= !forget;

        let before = mem::replace(&mut self.list.now, self.wheel.now().get());
        let now = self.list.now;
        assert!(before <= now && now <= to, "the hand");
        assert!(items.len() <= budget, "the budget is respected");
        self.list.cascade_in_order(to);
        if let (Some(peeked), Some((_, _, first))) = (peeked, items.first()) {
            let due_at = |deadline: u64| deadline.max(before);
            assert_eq!(due_at(first.get()), due_at(peeked), "peek shows the first");
        }
        let mut latest = 0;
        for &(id, key, deadline) in &items {
            let timer = *self.list.timers.get(&id).expect("returned and not there");
            assert!(!timer.disarmed, "disarmed, and returned");
            assert_eq!((timer.key, Tick::new(timer.deadline)), (key, deadline));
            assert!(timer.deadline <= now, "{timer:?} is early");
            self.list.assert_next(id);
            if timer.deadline > before {
                // Timers that were due before may wait in any order.
                assert!(latest <= timer.deadline, "{timer:?} is late");
                latest = timer.deadline;
            }
            self.list.remove(id);
        }
        let cascaded = self.wheel.cascaded() - cascaded;
        let cascades = (budget as u64).saturating_mul(CASCADES_PER_FIRE);
        assert!(cascaded <= cascades, "the budget is respected");
        if is_over && self.wheel.has_backlog() {
            let is_used_up = items.len() == budget || cascaded == cascades;
            assert!(is_used_up, "there is a backlog, and budget left");
        } else if is_over {
            assert_eq!(now, to, "the hand stopped");
        }
        let next = self.wheel.next_expiration().unwrap_or(Tick::MAX);
        assert!(
            forget || self.wheel.quiet_until() == next,
            "exact at the end"
        );
    }
}
