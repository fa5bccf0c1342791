//! A life that breaks a promise is shrunk to a few steps, which break the same promise.

use waterwheel_durable_simulator::{Broken, Life, Step, run, shrink};

/// The maximum number of steps that remain.
const LEFT: usize = 12;

#[test]
fn a_failing_seed_is_shrunk_to_a_few_steps_that_fail_as_well() {
    let broken = Some(Broken::KeysIgnored);
    let has_two = |what: &str| what.contains("has the key of");
    let mut failing =
        (0..10_000).filter(|seed| run(*seed, broken).is_err_and(|it| has_two(&it.what)));
    for seed in failing.by_ref().take(5) {
        let shrunk = shrink(seed, broken).expect("it fails");
        assert!(shrunk.steps.len() <= LEFT, "{shrunk:#?}");
        assert!(has_two(&shrunk.broke.what), "{shrunk:#?}");
        let (life, lived) = Life::record(seed, broken);
        assert!(life.len() > 2 * shrunk.steps.len());
        // With all of its steps, the life has the same outcome.
        let all: Vec<Step> = (0..life.len())
            .map(|number| Step {
                number,
                rests: false,
            })
            .collect();
        let (again, before) = (life.replay(&all, None), lived);
        assert_eq!(again.unwrap_err().what, before.unwrap_err().what);
        // Each step that remains is needed.
        for left_out in &shrunk.steps {
            let rest = shrunk.steps.iter().filter(|it| *it != left_out);
            let rest: Vec<Step> = rest.copied().collect();
            let replayed = life.replay(&rest, None);
            let is_broken = replayed.is_err_and(|it| has_two(&it.what));
            assert!(!is_broken, "without {left_out}");
        }
        let mut told = Vec::new();
        let mut tell = |step: Step, _: &str| told.push(step);
        let broke = life.replay(&shrunk.steps, Some(&mut tell)).unwrap_err();
        assert_eq!((broke, told), (shrunk.broke, shrunk.steps));
    }
}

#[test]
fn a_seed_that_fails_not_is_not_shrunk() {
    assert!(shrink(5, None::<Broken>).is_none());
}
