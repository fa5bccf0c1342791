//! Random steps with futures, checked by the oracle.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use waterwheel::MissedTickBehavior;

use super::model::{Act, Case, Home, Op, When, run};

const YEAR: Duration = Duration::from_secs(365 * 86_400);

fn durations() -> impl Strategy<Value = Duration> {
    let turns = [1, 60, 3_600, 86_400, 64 * 86_400].map(Duration::from_secs);
    let jitter = 0..=4_000_u64;
    prop_oneof![
        2 => (0..=3_u64).prop_map(Duration::from_nanos),
        6 => (0..=20_u64).prop_map(Duration::from_millis),
        3 => (0..=3_000_000_000_u64).prop_map(Duration::from_nanos),
        2 => (select(turns.to_vec()), jitter)
            .prop_map(|(turn, jitter)| turn + Duration::from_micros(jitter) - 2 * Duration::from_millis(1)),
        1 => (0..=200_u32).prop_map(|halves| YEAR * halves / 2),
        1 => Just(Duration::MAX),
    ]
}

/// Like [`durations`], but shorter, so that the clock does not soon reach its end.
fn steps() -> impl Strategy<Value = Duration> {
    durations().prop_map(|step| if step > YEAR { YEAR / 1_000 } else { step })
}

fn whens() -> impl Strategy<Value = When> {
    prop_oneof![
        1 => durations().prop_map(|ago| When::Ago(ago.min(YEAR))),
        4 => durations().prop_map(|delay| When::In(delay.min(YEAR * 100))),
    ]
}

fn homes() -> impl Strategy<Value = Home> {
    select(&[Home::Current, Home::Own][..])
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => Just(Act::Drop),
        3 => whens().prop_map(Act::Reset),
        2 => (0..4_usize).prop_map(|probe| Act::Poll { probe }),
        1 => Just(Act::Panic),
    ]
}

fn new() -> impl Strategy<Value = Op> {
    let behaviors = [
        MissedTickBehavior::Burst,
        MissedTickBehavior::Delay,
        MissedTickBehavior::Skip,
    ];
    let interval = (homes(), whens(), durations(), select(behaviors.to_vec()));
    prop_oneof![
        4 => (homes(), durations()).prop_map(|(home, delay)| Op::Sleep { home, delay }),
        2 => (homes(), whens()).prop_map(|(home, at)| Op::SleepUntil { home, at }),
        3 => (homes(), durations()).prop_map(|(home, limit)| Op::Timeout { home, limit }),
        2 => interval.prop_map(|(home, start, period, missed)| Op::Interval {
            home,
            start,
            period,
            missed,
        }),
    ]
}

fn old() -> impl Strategy<Value = Op> {
    let which = || 0..24_usize;
    let probe = || 0..4_usize;
    let trap = (which(), durations(), option::of(probe()), acts());
    prop_oneof![
        6 => (which(), probe()).prop_map(|(which, probe)| Op::Poll { which, probe }),
        6 => probe().prop_map(|probe| Op::PollAll { probe }),
        3 => trap.prop_map(|(which, delay, armed, act)| Op::PollWithTrap {
            which,
            delay,
            armed,
            act,
        }),
        4 => (which(), whens()).prop_map(|(which, to)| Op::Reset { which, to }),
        1 => (which(), durations()).prop_map(|(which, period)| Op::SetPeriod { which, period }),
        1 => which().prop_map(|which| Op::Complete { which }),
        2 => which().prop_map(|which| Op::Drop { which }),
    ]
}

fn time() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => steps().prop_map(|by| Op::Jump { by }),
        4 => Just(Op::Run),
        3 => (0..24_usize).prop_map(|which| Op::Await { which }),
    ]
}

fn end() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => homes().prop_map(|home| Op::Shutdown { home }),
        3 => homes().prop_map(|home| Op::Drain { home }),
        6 => homes().prop_map(|home| Op::PollDrain { home }),
        1 => Just(Op::DropHandle),
        1 => Just(Op::DropRuntime),
    ]
}

fn cases() -> impl Strategy<Value = Case> {
    let ticks = [100, 250, 1_000, 2_000, 8_000, 100_000, 1_000_000];
    let resolution = select(ticks.map(Duration::from_micros).to_vec());
    let starts = [durations(), durations()];
    let op = prop_oneof![6 => new(), 8 => old(), 6 => time(), 1 => end()];
    let parts = (resolution, option::of(1..9_usize), starts, vec(op, 1..60));
    parts.prop_map(|(resolution, max_pending, starts, ops)| Case {
        resolution,
        max_pending,
        starts: starts.map(|start| start.min(YEAR / 4)),
        ops,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]
    #[test]
    fn futures_do_what_the_oracle_says(case in cases()) {
        run(&case);
    }
}
