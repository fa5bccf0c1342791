//! Random steps on a wheel and a naive list.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use waterwheel::wheel::Resolution;

use crate::edges::{self, YEAR};
use crate::model::{Case, Op, Says, Wakes, run};

/// Delays and steps: mostly around the edges of the dials.
fn ticks(resolution: Resolution) -> impl Strategy<Value = u64> {
    let second = edges::second(resolution);
    let jitter = -2..=2_i64;
    prop_oneof![
        2 => 0..=2_u64,
        3 => 0..=2 * second,
        // Only a few values, so that many are equal.
        2 => (0..=20_u64).prop_map(move |tenths| tenths * second / 10),
        5 => (select(edges::delays(resolution)), jitter)
            .prop_map(|(edge, jitter)| edge.saturating_add_signed(jitter)),
        1 => 0..=90 * edges::revolutions(resolution)[3],
        1 => (0..=300_u64).prop_map(|years| years * YEAR),
        1 => (0..=1_000_u64).prop_map(|short| u64::MAX - short),
    ]
}

/// Like [`ticks`], but mostly short, so that time does not end at the third step.
fn steps(resolution: Resolution) -> impl Strategy<Value = u64> {
    let second = edges::second(resolution);
    let edges = edges::delays(resolution);
    prop_oneof![
        6 => 0..=2_u64,
        6 => 0..=2 * second,
        6 => select(edges).prop_map(|edge| edge),
        2 => (0..=300_u64).prop_map(|years| years * YEAR),
    ]
}

fn starts(resolution: Resolution) -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0),
        4 => (select(edges::starts(resolution)), 0..=1_000_u64)
            .prop_map(|(wrap, before)| wrap.saturating_sub(before)),
    ]
}

fn says(resolution: Resolution) -> impl Strategy<Value = Says> {
    prop_oneof![
        6 => Just(Says::Due),
        3 => ticks(resolution).prop_map(|by| Says::Postpone { by }),
        1 => Just(Says::Disarm),
        1 => Just(Says::Panic),
    ]
}

fn wakes(resolution: Resolution) -> impl Strategy<Value = Wakes> {
    let which = 0..1_000_usize;
    let ticks = || ticks(resolution);
    prop_oneof![
        2 => ticks().prop_map(|delay| Wakes::Insert { delay }),
        1 => which.clone().prop_map(|which| Wakes::Cancel { which }),
        1 => (which, ticks()).prop_map(|(which, delay)| Wakes::Reset { which, delay }),
    ]
}

pub(crate) fn ops(resolution: Resolution) -> impl Strategy<Value = Vec<Op>> {
    let ticks = || ticks(resolution);
    let steps = || steps(resolution);
    let which = 0..1_000_usize;
    let budget = || prop_oneof![3 => Just(usize::MAX), 3 => 0..=5_usize];
    let insert = (ticks(), prop::bool::weighted(0.05));
    let op = prop_oneof![
        20 => insert.prop_map(|(delay, bomb)| Op::Insert { delay, bomb }),
        1 => (ticks(), 0..40_u8).prop_map(|(delay, count)| Op::Herd { delay, count }),
        2 => ticks().prop_map(|ago| Op::InsertPast { ago }),
        5 => which.clone().prop_map(|which| Op::Cancel { which }),
        3 => (which.clone(), ticks()).prop_map(|(which, delay)| Op::Reset { which, delay }),
        2 => (which.clone(), ticks()).prop_map(|(which, by)| Op::ResetEarlier { which, by }),
        2 => (which.clone(), ticks()).prop_map(|(which, by)| Op::ResetLater { which, by }),
        2 => which.clone().prop_map(|which| Op::Disarm { which }),
        3 => steps().prop_map(|by| Op::SkipTo { by }),
        12 => (steps(), budget(), says(resolution))
            .prop_map(|(by, budget, says)| Op::Advance { by, budget, says }),
        6 => (steps(), budget(), says(resolution))
            .prop_map(|(by, budget, says)| Op::AdvanceInOrder { by, budget, says }),
        6 => (steps(), budget(), budget(), prop::bool::weighted(0.2))
            .prop_map(|(by, budget, taken, forget)| Op::Expire { by, budget, taken, forget }),
        2 => Just(Op::ExpirePeeked),
        6 => (steps(), budget(), wakes(resolution))
            .prop_map(|(by, batch, wakes)| Op::Turn { by, batch, wakes }),
        5 => Just(Op::AdvanceToExpiration),
        1 => (ticks(), budget()).prop_map(|(by, budget)| Op::ClockBack { by, budget }),
        1 => which.prop_map(|taken| Op::Drain { taken }),
        1 => Just(Op::Clear),
        1 => (0..=200_u8).prop_map(|additional| Op::Reserve { additional }),
        2 => Just(Op::ShrinkToFit),
        1 => starts(resolution).prop_map(|start| Op::Replace { start }),
    ];
    vec(op, 1..60)
}

/// The number of cases. Most of the time goes into checking every slot after every step, and a fine wheel has many slots.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig::with_cases(cases)
}

macro_rules! does_what_a_list_does {
    ($name:ident, $resolution:expr, $cases:expr) => {
        proptest! {
            #![proptest_config(cases($cases))]
            #[test]
            fn $name(start in starts($resolution), ops in ops($resolution)) {
                let resolution = $resolution;
                run(&Case { resolution, start, ops });
            }
        }
    };
}

does_what_a_list_does!(
    a_wheel_of_milliseconds_does_what_a_list_does,
    edges::resolutions()[0],
    600
);
does_what_a_list_does!(
    a_wheel_of_100_microseconds_does_what_a_list_does,
    edges::resolutions()[1],
    60
);
does_what_a_list_does!(
    a_wheel_of_10_milliseconds_does_what_a_list_does,
    edges::resolutions()[2],
    600
);
does_what_a_list_does!(
    a_wheel_of_seconds_does_what_a_list_does,
    edges::resolutions()[3],
    600
);

// Nine timers cascade, and the budget of one takes eight of them. Those are due, but the iterator has ended. (The property above found
// it, once in some thousand cases.)
#[test]
fn an_iterator_that_ends_amid_a_cascade_stays_ended() {
    run(&Case {
        resolution: edges::resolutions()[3],
        start: 0,
        ops: vec![
            Op::Herd { delay: 2, count: 9 },
            Op::Advance {
                by: 2,
                budget: 0,
                says: Says::Due,
            },
            Op::Expire {
                by: 0,
                budget: 1,
                taken: usize::MAX,
                forget: false,
            },
        ],
    });
}

// In this turn, each timer that comes up brings back a disarmed one. It ends with the last of them. (The property
// above found it: its bound did not count disarmed timers.)
#[test]
fn a_turn_ends_though_each_timer_brings_back_a_disarmed_one() {
    for start in [0, u64::MAX - 1] {
        run(&Case {
            resolution: Resolution::MILLISECOND,
            start,
            ops: vec![
                Op::Herd {
                    delay: 0,
                    count: 12,
                },
                Op::Advance {
                    by: 0,
                    budget: usize::MAX,
                    says: Says::Disarm,
                },
                Op::Reset {
                    which: 105,
                    delay: 0,
                },
                Op::Turn {
                    by: 1,
                    batch: usize::MAX,
                    wakes: Wakes::Reset { which: 1, delay: 0 },
                },
            ],
        });
    }
}
