//! The clock starts near each wrap of each dial and counter, and timers are armed, moved, disarmed and cancelled
//! across it, compared to the naive list after every step.
//!
//! The properties do so at random; here each wrap gets its own case.

use waterwheel::wheel::Resolution;

use crate::edges;
use crate::model::{Case, Op, Says, run};

/// How far before the wrap the hand stands, in ticks: close, and a second and a little.
fn before(resolution: Resolution) -> [u64; 2] {
    [2, edges::second(resolution) + 1]
}

/// Timers before, at and after the wrap, and a whole revolution of each dial after it.
fn arm(wrap: u64, resolution: Resolution) -> Vec<Op> {
    let around = wrap.saturating_sub(2)..=wrap.saturating_add(2);
    let revolutions = edges::revolutions(resolution);
    let whole = revolutions.map(|ticks| wrap.saturating_add(ticks));
    let almost = whole.map(|whole| whole - 1);
    let delays = around.chain(whole).chain(almost);
    let insert = |delay| Op::Insert { delay, bomb: false };
    delays.map(insert).collect()
}

/// Moves some timers from one side of the wrap to the other, and some back, and cancels or disarms others.
///
/// The lowest two bits of `which` tell whether it is an existing timer (not zero), the rest
/// which one.
fn meddle(wrap: u64) -> [Op; 6] {
    let there = |number: usize| number * 4 + 1;
    [
        Op::Cancel { which: there(1) },
        Op::ResetLater {
            which: there(0),
            by: wrap + 1,
        },
        Op::ResetEarlier {
            which: there(6),
            by: wrap + 1,
        },
        Op::Reset {
            which: there(3),
            delay: wrap,
        },
        Op::Disarm { which: there(2) },
        Op::Cancel { which: 0 },
    ]
}

/// Steps over the wrap tick by tick, with the existing timers and some that are armed on the way.
fn step_over(wrap: u64) -> Vec<Op> {
    // Skip as far as no timer comes up: at most to three ticks before the wrap.
    let mut ops = vec![Op::SkipTo { by: wrap }];
    for step in 0..7 {
        ops.push(Op::Insert {
            delay: step % 3,
            bomb: false,
        });
        ops.push(Op::Advance {
            by: 1,
            budget: if step == 2 { 1 } else { usize::MAX },
            says: if step == 3 {
                Says::Postpone { by: 2 }
            } else {
                Says::Due
            },
        });
    }
    ops.push(Op::ClockBack {
        by: 3,
        budget: usize::MAX,
    });
    ops
}

#[test]
fn a_wheel_started_near_any_wrap_does_what_a_list_does() {
    for resolution in edges::resolutions() {
        for wrap in edges::starts(resolution) {
            for before in before(resolution) {
                let Some(start) = wrap.checked_sub(before) else {
                    continue;
                };
                let mut ops = arm(before, resolution);
                ops.extend(meddle(before));
                ops.extend(step_over(before));
                // On to a whole revolution of each dial, from one expiration to the next.
                ops.extend(std::iter::repeat_n(Op::AdvanceToExpiration, 8));
                run(&Case {
                    resolution,
                    start,
                    ops,
                });
            }
        }
    }
}
