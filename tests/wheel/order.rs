//! In order: by tick, and equal ticks in the order of filing, whichever dials they were on. The model checks this as long as
//! the hand is only moved in order.

use proptest::prelude::*;
use proptest::sample::select;

use waterwheel::wheel::{Resolution, Tick, Verdict, Wheel};

use crate::edges;
use crate::model::{Case, Op, Says, run};
use crate::properties::ops;

/// Applies these steps, and hands out the rest in order.
fn run_in_order(resolution: Resolution, mut ops: Vec<Op>) {
    ops.push(advance(u64::MAX));
    run(&Case {
        resolution,
        start: 0,
        ops,
    });
}

fn advance(by: u64) -> Op {
    Op::AdvanceInOrder {
        by,
        budget: usize::MAX,
        says: Says::Due,
    }
}

/// The step, or a replacement that moves the hand in order.
fn in_order(op: Op) -> Op {
    match op {
        Op::Advance { by, budget, says } => Op::AdvanceInOrder { by, budget, says },
        Op::Turn { by, batch, .. } => Op::AdvanceInOrder {
            by,
            budget: batch,
            says: Says::Due,
        },
        Op::Expire {
            by, budget, taken, ..
        } => Op::Expire {
            by,
            budget,
            taken,
            forget: false,
        },
        Op::AdvanceToExpiration | Op::ClockBack { .. } => Op::ExpirePeeked,
        op => op,
    }
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
        run_in_order(resolution, ops.into_iter().map(in_order).collect());
    }
}

// The hand moves far in one step, over slots of all dials.
#[test]
fn a_jump_over_all_dials_hands_out_by_tick_and_by_filing() {
    for resolution in edges::resolutions() {
        let delays = edges::delays(resolution).into_iter().rev();
        let mut ops: Vec<_> = delays.map(|delay| Op::Herd { delay, count: 2 }).collect();
        let by = edges::second(resolution) / 2;
        ops.push(Op::SkipTo { by });
        run_in_order(resolution, vec![ops; 3].concat());
    }
}

// The first timer lies on the dial of minutes, and cascades when it is due in exactly one revolution of the first
// dial. If it were filed on the first dial then, the second timer, which is on the dial of seconds, would come up
// behind the third.
#[test]
fn a_timer_that_cascades_stays_before_timers_filed_after_it() {
    let insert = |delay| Op::Herd { delay, count: 1 };
    let ops = vec![
        insert(121_000),
        advance(100_000),
        insert(21_000),
        advance(20_000),
        insert(1_000),
        advance(1),
        insert(999),
    ];
    run_in_order(Resolution::MILLISECOND, ops);
}

// A version that looked beyond the dials once in 64 days took forever.
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
