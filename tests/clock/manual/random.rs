//! Random steps, compared to a list of deadlines as the oracle.

use proptest::prelude::*;
use waterwheel::{Instant, Sleep};

use super::on_both_flavors;
use crate::support::{Probe, ms, us};

#[derive(Debug, Clone)]
enum Step {
    Arm { millis: u64 },
    Move { which: usize, to: u64 },
    Cancel { which: usize },
    Advance { micros: u64 },
    Next,
}

fn step() -> impl Strategy<Value = Step> {
    let far = prop_oneof![0..20_u64, 0..2_000_u64, 0..10_000_000_u64];
    prop_oneof![
        3 => far.clone().prop_map(|millis| Step::Arm { millis }),
        2 => (any::<usize>(), far.clone()).prop_map(|(which, to)| Step::Move { which, to }),
        1 => any::<usize>().prop_map(|which| Step::Cancel { which }),
        3 => far.prop_map(|tenths| Step::Advance { micros: tenths * 100 }),
        1 => Just(Step::Next),
    ]
}

/// A pending sleep, its deadline, and the waker that is called for it.
struct Waiting {
    sleep: Sleep,
    /// The start of its tick.
    due: Instant,
    probe: Probe,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn each_is_woken_at_its_tick_whatever_the_steps(steps in prop::collection::vec(step(), 1..60)) {
        on_both_flavors(|_, clock, timer| {
            let begin = clock.now();
            // The ticks begin with the timer.
            let tick = |at: Instant| {
                let micros = (at - begin).as_micros().div_ceil(1_000) * 1_000;
                begin + us(micros as u64)
            };
            let mut waiting: Vec<Waiting> = Vec::new();
            for step in &steps {
                match *step {
                    Step::Arm { millis } => {
                        let mut sleep = timer.sleep(ms(millis));
                        let (due, probe) = (tick(sleep.deadline()), Probe::new());
                        let is_due = probe.poll(&mut sleep).is_ready();
                        assert_eq!(is_due, due <= floor(begin, clock.now()));
                        if !is_due {
                            waiting.push(Waiting { sleep, due, probe });
                        }
                    }
                    Step::Move { which, to } if !waiting.is_empty() => {
                        let at = which % waiting.len();
                        let deadline = clock.now() + ms(to);
                        waiting[at].sleep.set_deadline(deadline);
                        waiting[at].due = tick(deadline);
                    }
                    Step::Cancel { which } if !waiting.is_empty() => {
                        let gone = waiting.swap_remove(which % waiting.len());
                        assert_eq!(gone.probe.wakes(), 0);
                    }
                    Step::Advance { micros } => clock.advance(us(micros)),
                    Step::Next => {
                        let next = waiting.iter().map(|it| it.due).min();
                        assert_eq!(clock.advance_to_next(), next);
                    }
                    _ => {}
                }
                let now = floor(begin, clock.now());
                waiting.retain_mut(|it| {
                    let is_due = it.due <= now;
                    assert_eq!(it.probe.wakes(), usize::from(is_due), "{step:?}");
                    assert_eq!(it.probe.poll(&mut it.sleep).is_ready(), is_due);
                    !is_due
                });
            }
        });
    }
}

/// The start of the clock's current tick.
fn floor(begin: Instant, now: Instant) -> Instant {
    begin + ms((now - begin).as_millis() as u64)
}
