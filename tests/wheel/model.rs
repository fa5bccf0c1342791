//! What a wheel must do, told by a naive list.
//!
//! There is no property-testing crate in this file, so that a fuzzer may share it.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::thread;

use waterwheel::wheel::{Key, Resolution, Tick, Verdict, Wheel};

/// One step. Times count from the wheel's hand unless they say otherwise, and saturate.
///
/// `which` picks a timer: mostly one that is there, each fourth number one that is gone.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// Adds a timer; the drop of a `bomb` panics.
    Insert {
        delay: u64,
        bomb: bool,
    },
    /// Adds a timer that was due before it was added.
    InsertPast {
        ago: u64,
    },
    Cancel {
        which: usize,
    },
    /// Moves a timer to a deadline counted from the hand.
    Reset {
        which: usize,
        delay: u64,
    },
    /// Moves a timer to a deadline before its own.
    ResetEarlier {
        which: usize,
        by: u64,
    },
    /// Moves a timer to a deadline after its own.
    ResetLater {
        which: usize,
        by: u64,
    },
    Park {
        which: usize,
    },
    SkipTo {
        by: u64,
    },
    /// Advances the hand; `says` is what the judge says of every second timer.
    Advance {
        by: u64,
        budget: usize,
        says: Says,
    },
    /// Advances to just before the next turn, then to the turn itself.
    AdvanceToTurn,
    /// Advances and skips to a time that has passed.
    ClockBack {
        by: u64,
        budget: usize,
    },
    Drain,
}

/// What the judge says of the timers with an odd number; the others are due.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Says {
    Due,
    Refile { by: u64 },
    Park,
    Panic,
}

/// Does the steps on a wheel and on the list, and compares the two after each; then lets time
/// end, so that whatever was lost is missed.
///
/// # Panics
///
/// If they differ.
pub(crate) fn run(resolution: Resolution, start: u64, ops: &[Op]) {
    let mut pair = Pair::new(resolution, start);
    for op in ops {
        pair.apply(op);
        pair.check();
    }
    pair.finish();
}

/// The naive list.
struct Model {
    now: u64,
    second: u64,
    timers: BTreeMap<u64, Timer>,
    gone: Vec<Key>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Timer {
    key: Key,
    deadline: u64,
    parked: bool,
    /// Filed when it was less than a second away: the wheel knows its deadline exactly.
    near: bool,
}

impl Model {
    fn file(&mut self, id: u64, key: Key, deadline: u64) {
        let timer = Timer {
            key,
            deadline,
            parked: false,
            near: deadline.saturating_sub(self.now) <= self.second,
        };
        self.timers.insert(id, timer);
    }

    fn park(&mut self, id: u64) {
        self.timers.get_mut(&id).expect("is there").parked = true;
    }

    fn remove(&mut self, id: u64) {
        let timer = self.timers.remove(&id).expect("is there");
        self.gone.push(timer.key);
    }

    fn pending(&self) -> impl Iterator<Item = (u64, Timer)> {
        let timers = self.timers.iter().filter(|(_, timer)| !timer.parked);
        timers.map(|(&id, &timer)| (id, timer))
    }

    /// A key that is there, with the number of its timer, or one that is gone.
    fn pick(&self, which: usize) -> Option<(Key, Option<u64>)> {
        let (kind, which) = (which % 4, which / 4);
        if kind == 0 && !self.gone.is_empty() {
            return Some((self.gone[which % self.gone.len()], None));
        }
        let which = which.checked_rem(self.timers.len())?;
        let (&id, timer) = self.timers.iter().nth(which)?;
        Some((timer.key, Some(id)))
    }
}

/// A payload whose drop may panic, once, without a message.
#[derive(Debug)]
struct Payload {
    id: u64,
    bomb: bool,
}

struct Boom;

impl Drop for Payload {
    fn drop(&mut self) {
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

struct Pair {
    wheel: Wheel<Payload>,
    model: Model,
    inserted: u64,
}

impl Pair {
    fn new(resolution: Resolution, start: u64) -> Pair {
        let model = Model {
            now: start,
            second: u64::from(resolution.ticks_per_second()),
            timers: BTreeMap::new(),
            gone: Vec::new(),
        };
        Pair {
            wheel: Wheel::starting_at(resolution, Tick::new(start)),
            model,
            inserted: 0,
        }
    }

    fn apply(&mut self, op: &Op) {
        let now = self.model.now;
        match *op {
            Op::Insert { delay, bomb } => self.insert(now.saturating_add(delay), bomb),
            Op::InsertPast { ago } => self.insert(now.saturating_sub(ago), false),
            Op::Cancel { which } => self.cancel(which),
            Op::Reset { which, delay } => self.reset(which, |_| now.saturating_add(delay)),
            Op::ResetEarlier { which, by } => self.reset(which, |own| own.saturating_sub(by)),
            Op::ResetLater { which, by } => self.reset(which, |own| own.saturating_add(by)),
            Op::Park { which } => self.park(which),
            Op::SkipTo { by } => self.skip_to(now.saturating_add(by)),
            Op::Advance { by, budget, says } => {
                self.advance(now.saturating_add(by), budget, says);
            }
            Op::AdvanceToTurn => {
                let Some(turn) = self.wheel.next_turn().map(Tick::get) else {
                    return;
                };
                self.advance(turn.saturating_sub(1), usize::MAX, Says::Due);
                self.check();
                self.advance(turn, usize::MAX, Says::Due);
            }
            Op::ClockBack { by, budget } => {
                self.skip_to(now.saturating_sub(by));
                self.check();
                self.advance(now.saturating_sub(by), budget, Says::Due);
            }
            Op::Drain => self.drain(),
        }
    }

    fn insert(&mut self, deadline: u64, bomb: bool) {
        let id = self.inserted;
        self.inserted += 1;
        let key = self.wheel.insert(Tick::new(deadline), Payload { id, bomb });
        self.model.file(id, key, deadline);
    }

    fn cancel(&mut self, which: usize) {
        let Some((key, id)) = self.model.pick(which) else {
            return;
        };
        let payload = self.wheel.cancel(key);
        assert_eq!(payload.as_ref().map(|payload| payload.id), id, "cancelled");
        survive(|| drop(payload));
        if let Some(id) = id {
            self.model.remove(id);
        }
    }

    fn reset(&mut self, which: usize, deadline: impl FnOnce(u64) -> u64) {
        let Some((key, id)) = self.model.pick(which) else {
            return;
        };
        let own = self.wheel.deadline(key).unwrap_or_default();
        let deadline = deadline(own.get());
        let moved = self.wheel.reset(key, Tick::new(deadline));
        assert_eq!(moved, id.is_some(), "reset");
        if let Some(id) = id {
            self.model.file(id, key, deadline);
        }
    }

    fn park(&mut self, which: usize) {
        let Some((key, id)) = self.model.pick(which) else {
            return;
        };
        let pending = id.is_some_and(|id| !self.model.timers[&id].parked);
        assert_eq!(self.wheel.park(key), pending, "parked");
        if let Some(id) = id {
            self.model.park(id);
        }
    }

    fn skip_to(&mut self, to: u64) {
        let turn = self.wheel.next_turn();
        let quiet = match self.model.pending().next() {
            Some(_) => self.wheel.quiet_until().get(),
            None => u64::MAX,
        };
        self.wheel.skip_to(Tick::new(to));
        assert_eq!(self.wheel.next_turn(), turn, "nothing comes up by skipping");
        self.model.now = to.min(quiet.saturating_sub(1)).max(self.model.now);
    }

    fn advance(&mut self, to: u64, budget: usize, says: Says) {
        let turn = self.wheel.next_turn().map(Tick::get);
        let idle = !self.wheel.has_backlog();
        let cascaded = self.wheel.cascaded();
        let hand = to.max(self.model.now);
        let there = self.wheel.len();
        let (mut judged, mut handed) = (Vec::new(), Vec::new());
        let progress = survive(|| {
            let judge = |key, deadline, payload: &mut Payload| {
                let verdict = match says {
                    _ if payload.id % 2 == 0 => Verdict::Due,
                    Says::Due => Verdict::Due,
                    Says::Refile { by } => Verdict::Refile(Tick::new(hand.saturating_add(by))),
                    Says::Park => Verdict::Park,
                    Says::Panic => panic::resume_unwind(Box::new(Boom)),
                };
                assert!(judged.len() < there, "a timer comes up again and again");
                judged.push((payload.id, key, deadline, verdict));
                verdict
            };
            let due = |deadline: Tick, payload: Payload| handed.push((deadline, payload.id));
            self.wheel.advance(Tick::new(to), budget, judge, due)
        });

        self.model.now = hand;
        assert!(judged.len() <= budget, "the budget is respected");
        let mut in_hand = handed.iter();
        let mut refiled = 0;
        for &(id, key, deadline, verdict) in &judged {
            let timer = *self.model.timers.get(&id).expect("judged and not there");
            assert!(!timer.parked, "parked, and judged");
            assert_eq!((timer.key, Tick::new(timer.deadline)), (key, deadline));
            assert!(
                timer.deadline <= hand,
                "{timer:?} comes up early, at {hand}"
            );
            match verdict {
                Verdict::Refile(later) if later.get() > hand => {
                    self.model.file(id, key, later.get());
                    refiled += 1;
                }
                Verdict::Park => self.model.park(id),
                Verdict::Refile(_) | Verdict::Due => {
                    assert_eq!(in_hand.next(), Some(&(deadline, id)), "handed out");
                    self.model.remove(id);
                }
            }
        }
        assert_eq!(in_hand.next(), None, "handed out and not judged");

        // The rest is known only if nothing panicked.
        let Some(progress) = progress else {
            return;
        };
        assert_eq!(progress.fired, judged.len() - refiled);
        assert_eq!(progress.refiled, refiled);
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
            let came_up = turn.is_some_and(|turn| turn <= hand);
            assert_eq!(
                !judged.is_empty() || cascaded > 0,
                came_up,
                "there is something to do exactly from the next turn on"
            );
        }
        let next = self.wheel.next_turn().unwrap_or(Tick::MAX);
        assert_eq!(self.wheel.quiet_until(), next, "exact after an advance");
    }

    fn drain(&mut self) {
        let defuse = |mut payload: Payload| {
            payload.bomb = false;
            payload.id
        };
        let mut drained: Vec<u64> = self.wheel.drain().map(defuse).collect();
        drained.sort_unstable();
        let there: Vec<u64> = self.model.timers.keys().copied().collect();
        assert_eq!(drained, there, "drained");
        for id in drained {
            self.model.remove(id);
        }
    }

    fn check(&self) {
        let (wheel, model) = (&self.wheel, &self.model);
        wheel.check_invariants();
        assert_eq!(wheel.now().get(), model.now);

        let mut listed: Vec<_> = wheel
            .iter()
            .map(|(key, deadline, payload)| (payload.id, key, deadline.get()))
            .collect();
        listed.sort_unstable_by_key(|&(id, ..)| id);
        let pending: Vec<_> = model
            .pending()
            .map(|(id, timer)| (id, timer.key, timer.deadline))
            .collect();
        assert_eq!(listed, pending, "the pending timers");
        assert_eq!(wheel.len(), pending.len());
        assert_eq!(wheel.is_empty(), pending.is_empty());

        for (&id, timer) in &model.timers {
            assert_eq!(wheel.get(timer.key).map(|payload| payload.id), Some(id));
            assert_eq!(wheel.deadline(timer.key), Some(Tick::new(timer.deadline)));
            assert_eq!(wheel.is_pending(timer.key), !timer.parked);
        }
        for &key in &model.gone {
            assert!(wheel.get(key).is_none(), "{key:?} is gone");
            assert_eq!(wheel.deadline(key), None, "{key:?} is gone");
            assert!(!wheel.is_pending(key), "{key:?} is gone");
        }
        self.check_next_turn();
    }

    fn check_next_turn(&self) {
        let turn = self.wheel.next_turn().map(Tick::get);
        let now = self.model.now;
        let timers = self.model.pending().map(|(_, timer)| timer);
        let Some(earliest) = timers.min_by_key(|timer| timer.deadline) else {
            assert_eq!(turn, None, "nothing is pending");
            return;
        };
        let turn = turn.expect("something is pending");
        if self.wheel.has_backlog() {
            assert_eq!(turn, now, "something waits to be served");
            return;
        }
        assert!(
            turn > now,
            "{earliest:?} waits to be served, and is no backlog"
        );
        assert!(turn <= earliest.deadline, "{earliest:?} is late, at {turn}");
        let second = self.model.second;
        let exact = earliest.deadline / second == now / second
            || self.model.pending().all(|(_, timer)| timer.near);
        assert!(
            turn == earliest.deadline || !exact && turn % second == 0,
            "{earliest:?} comes up at {turn}"
        );
    }

    /// Nothing is lost: at the end of time everything comes up, and the parked are still there.
    fn finish(mut self) {
        let bombs_at_most = self.model.timers.len();
        for _ in 0..=bombs_at_most {
            self.advance(u64::MAX, usize::MAX, Says::Due);
            self.check();
        }
        assert_eq!(self.wheel.next_turn(), None, "time has ended");
        self.drain();
        self.check();
    }
}
