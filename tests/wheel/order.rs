//! In order: by tick, and equal ticks as they were filed, whichever dials they were on.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use waterwheel::wheel::{Key, Progress, Resolution, Tick, Verdict, Wheel};

use crate::edges;

/// One step. Times count from the wheel's hand.
#[derive(Debug, Clone)]
enum Op {
    /// Files as many timers under one deadline.
    Insert {
        delay: u64,
        count: u8,
    },
    Cancel {
        which: usize,
    },
    Reset {
        which: usize,
        delay: u64,
    },
    SkipTo {
        by: u64,
    },
    /// `postpone` moves each third timer that comes up, once, by so many ticks after its deadline.
    Advance {
        by: u64,
        budget: usize,
        postpone: Option<u64>,
    },
    /// The iterator, dropped after so many items.
    Expire {
        by: u64,
        budget: usize,
        taken: usize,
    },
}

/// A timer of the list: when it comes up, and when it was filed, as a number.
#[derive(Debug, Clone, Copy)]
struct Timer {
    tick: u64,
    filed: u64,
    id: u64,
    key: Key,
    deadline: u64,
}

struct Pair {
    wheel: Wheel<u64>,
    list: Vec<Timer>,
    filings: u64,
    inserted: u64,
    /// What `Op::Advance` has postponed already.
    moved: Vec<u64>,
}

impl Pair {
    fn new(resolution: Resolution) -> Pair {
        Pair {
            wheel: Wheel::new(resolution),
            list: Vec::new(),
            filings: 0,
            inserted: 0,
            moved: Vec::new(),
        }
    }

    fn apply(&mut self, op: &Op) {
        let now = self.wheel.now().get();
        match *op {
            Op::Insert { delay, count } => {
                for _ in 0..count {
                    let id = self.inserted;
                    self.inserted += 1;
                    let key = self.wheel.insert(Tick::new(now + delay), id);
                    self.file(id, key, now + delay);
                }
            }
            Op::Cancel { which } => {
                if let Some(at) = which.checked_rem(self.list.len()) {
                    let timer = self.list.remove(at);
                    assert_eq!(self.wheel.cancel(timer.key), Some(timer.id));
                }
            }
            Op::Reset { which, delay } => {
                if let Some(at) = which.checked_rem(self.list.len()) {
                    let timer = self.list.remove(at);
                    assert!(self.wheel.reset(timer.key, Tick::new(now + delay)));
                    self.file(timer.id, timer.key, now + delay);
                }
            }
            Op::SkipTo { by } => self.wheel.skip_to(Tick::new(now + by)),
            Op::Advance {
                by,
                budget,
                postpone,
            } => self.advance(now + by, budget, postpone),
            Op::Expire { by, budget, taken } => self.expire(now + by, budget, taken),
        }
        self.wheel.check_invariants();
        let peeked = self.wheel.peek().map(|(_, _, &id)| id);
        assert_eq!(peeked, self.next(u64::MAX).map(|at| self.list[at].id));
    }

    fn file(&mut self, id: u64, key: Key, deadline: u64) {
        self.list.push(Timer {
            // A timer that is due already counts as due at the hand.
            tick: deadline.max(self.wheel.now().get()),
            filed: self.filings,
            id,
            key,
            deadline,
        });
        self.filings += 1;
    }

    /// The next to come up by `now`.
    fn next(&self, now: u64) -> Option<usize> {
        let due = (0..self.list.len()).filter(|&at| self.list[at].tick <= now);
        due.min_by_key(|&at| (self.list[at].tick, self.list[at].filed))
    }

    fn advance(&mut self, to: u64, budget: usize, postpone: Option<u64>) {
        let mut judged = Vec::new();
        let moved = &mut self.moved;
        let judge = |_, deadline: Tick, id: &mut u64| {
            let verdict = match postpone {
                Some(by) if *id % 3 == 0 && !moved.contains(id) => {
                    moved.push(*id);
                    Verdict::Postpone(Tick::new(deadline.get() + by))
                }
                _ => Verdict::Due,
            };
            judged.push((*id, deadline.get(), verdict));
            verdict
        };
        let mut handed = Vec::new();
        let due = |_, id| handed.push(id);
        let Progress { backlog, .. } =
            self.wheel
                .advance_in_order(Tick::new(to), budget, judge, due);
        assert!(judged.len() <= budget);
        let mut in_hand = handed.into_iter();
        for &(id, deadline, verdict) in &judged {
            let at = self.next(to).expect("something comes up by then");
            let timer = self.list.remove(at);
            assert_eq!((timer.id, timer.deadline), (id, deadline), "the next one");
            match verdict {
                Verdict::Postpone(later) if later.get() > timer.tick => {
                    let filed = self.filings;
                    self.filings += 1;
                    let (tick, deadline) = (later.get(), later.get());
                    self.list.push(Timer {
                        tick,
                        deadline,
                        filed,
                        ..timer
                    });
                }
                _ => assert_eq!(in_hand.next(), Some(id)),
            }
        }
        assert_eq!(in_hand.next(), None);
        // What is due and was not served is a backlog, and the hand has not passed it.
        if let Some(at) = self.next(to) {
            assert!(backlog);
            assert!(self.wheel.now().get() <= self.list[at].tick);
        }
        if !backlog {
            assert_eq!(self.wheel.now().get(), to);
        }
        assert!(!backlog || budget < usize::MAX);
    }

    fn expire(&mut self, to: u64, budget: usize, taken: usize) {
        let items = self.wheel.expire(Tick::new(to), budget).take(taken);
        let items: Vec<_> = items.collect();
        assert!(items.len() <= budget);
        let ended_early = items.len() == taken;
        for (key, deadline, id) in items {
            let at = self.next(to).expect("something comes up by then");
            let timer = self.list.remove(at);
            assert_eq!((timer.id, timer.key), (id, key), "the next one");
            assert_eq!(timer.deadline, deadline.get());
        }
        let now = self.wheel.now().get();
        // A backlog may be one of cascades, with nothing due.
        assert!(ended_early || self.wheel.has_backlog() || now == to);
        if let Some(at) = self.next(to) {
            assert!(ended_early || self.wheel.has_backlog());
            assert!(now <= self.list[at].tick);
        }
    }

    fn finish(mut self) {
        let end = self.list.iter().map(|timer| timer.tick).max();
        let now = self.wheel.now().get();
        self.advance(end.unwrap_or(0).max(now), usize::MAX, None);
        assert!(self.list.is_empty() && self.wheel.is_empty());
    }
}

/// Mostly around the edges of the dials, and few enough that many are equal.
fn ticks(resolution: Resolution) -> impl Strategy<Value = u64> {
    let second = edges::second(resolution);
    prop_oneof![
        3 => 0..=2_u64,
        2 => (0..=20_u64).prop_map(move |tenths| tenths * second / 10),
        5 => (select(edges::delays(resolution)), -1..=1_i64)
            .prop_map(|(edge, by)| edge.saturating_add_signed(by)),
        1 => 0..=90 * edges::revolutions(resolution)[3],
    ]
}

fn ops(resolution: Resolution) -> impl Strategy<Value = Vec<Op>> {
    let ticks = || ticks(resolution);
    let which = 0..1_000_usize;
    let budget = || prop_oneof![3 => Just(usize::MAX), 3 => 1..=5_usize];
    let postpone = prop::option::weighted(0.3, ticks());
    let op = prop_oneof![
        12 => (ticks(), 1..4_u8).prop_map(|(delay, count)| Op::Insert { delay, count }),
        1 => (ticks(), 1..100_u8).prop_map(|(delay, count)| Op::Insert { delay, count }),
        2 => which.clone().prop_map(|which| Op::Cancel { which }),
        2 => (which, ticks()).prop_map(|(which, delay)| Op::Reset { which, delay }),
        2 => ticks().prop_map(|by| Op::SkipTo { by }),
        8 => (ticks(), budget(), postpone)
            .prop_map(|(by, budget, postpone)| Op::Advance { by, budget, postpone }),
        8 => (ticks(), budget(), budget())
            .prop_map(|(by, budget, taken)| Op::Expire { by, budget, taken }),
    ];
    vec(op, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn what_comes_up_in_order_does_so_by_tick_and_by_filing(
        (resolution, ops) in select(vec![
            edges::resolutions()[0],
            edges::resolutions()[2],
            edges::resolutions()[3],
        ]).prop_flat_map(|resolution| (Just(resolution), ops(resolution)))
    ) {
        let mut pair = Pair::new(resolution);
        for op in &ops {
            pair.apply(op);
        }
        pair.finish();
    }
}

// The hand moves far in one step, over slots of all dials.
#[test]
fn a_jump_over_all_dials_hands_out_by_tick_and_by_filing() {
    for resolution in edges::resolutions() {
        let mut pair = Pair::new(resolution);
        for _ in 0..3 {
            for &delay in edges::delays(resolution).iter().rev() {
                pair.apply(&Op::Insert { delay, count: 2 });
            }
            let by = edges::second(resolution) / 2;
            pair.apply(&Op::SkipTo { by });
        }
        pair.finish();
    }
}

// The first timer lies on the dial of minutes, and cascades when it is due in exactly one revolution of the first
// dial. If it were filed on the first dial then, the second timer, which is on the dial of seconds, would come up
// behind the third.
#[test]
fn a_timer_that_cascades_stays_before_timers_filed_after_it() {
    let mut pair = Pair::new(Resolution::MILLISECOND);
    let deadline = 121_000;
    let insert = |pair: &mut Pair| {
        let delay = deadline - pair.wheel.now().get();
        pair.apply(&Op::Insert { delay, count: 1 });
    };
    let advance = |pair: &mut Pair, to: u64| {
        let by = to - pair.wheel.now().get();
        let budget = usize::MAX;
        let postpone = None;
        pair.apply(&Op::Advance {
            by,
            budget,
            postpone,
        });
    };
    insert(&mut pair);
    advance(&mut pair, 100_000);
    insert(&mut pair);
    advance(&mut pair, 120_000);
    insert(&mut pair);
    advance(&mut pair, 120_001);
    insert(&mut pair);
    pair.finish();
}

// A version that looked beyond the dials once in 64 days took for ever.
#[test]
fn a_jump_to_the_end_of_time_in_order_is_a_few_steps() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let far = [u64::MAX - 1, 1 << 60, 1 << 50, u64::MAX];
    for deadline in far {
        wheel.insert(Tick::new(deadline), deadline);
    }
    let mut served = Vec::new();
    let due = |_, deadline| served.push(deadline);
    wheel.advance_in_order(Tick::MAX, usize::MAX, |_, _, _| Verdict::Due, due);
    assert_eq!(served, [1 << 50, 1 << 60, u64::MAX - 1, u64::MAX]);
    assert!(wheel.cascaded() < 40, "{} moves", wheel.cascaded());
}

// `advance` had taken the timer out of its list, and its budget was used up before it was filed again.
#[test]
fn a_timer_on_its_way_back_beyond_the_dials_comes_up() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    wheel.insert(Tick::new(8_262_432_000_000), ());
    wheel.advance(
        Tick::new(6_086_448_000_000),
        0,
        |_, _, ()| Verdict::Due,
        |_, ()| (),
    );
    let now = Tick::new(8_262_432_000_000);
    let progress = wheel.advance_in_order(now, 1, |_, _, ()| Verdict::Due, |_, ()| ());
    assert_eq!(progress.expired, 1);
    wheel.check_invariants();
}
