//! Runs a few lives. The program runs many more.

use waterwheel_durable_simulator::{Broke, Broken, Fault, Life, Step, cluster, run};

#[test]
fn every_promise_is_kept_in_the_lives_of_some_seeds() {
    is_kept::<Broken>(2_000);
    is_kept::<cluster::Fault>(100);
}

fn is_kept<F: Fault>(seeds: u64) {
    for seed in 0..seeds {
        if let Err(broke) = run(seed, None::<F>) {
            panic!("{broke}");
        }
    }
}

/// All steps of a life, in words.
fn told<F: Fault>(life: &Life<F>) -> Result<Vec<String>, Broke> {
    let steps: Vec<Step> = (0..life.len())
        .map(|number| Step {
            number,
            rests: false,
        })
        .collect();
    let mut all = Vec::new();
    life.replay(&steps, Some(&mut |_, words| all.push(words.to_owned())))?;
    Ok(all)
}

// Each map has its own random keys, so a dependence on the order of a map shows as well.
#[test]
fn a_seed_always_has_the_same_life() {
    // In 183, the clocks move while timers of one millisecond wait.
    is_same::<Broken>((0..200).chain([183; 4]));
    is_same::<cluster::Fault>(0..20);
}

fn is_same<F: Fault>(seeds: impl Iterator<Item = u64>) {
    for seed in seeds {
        let (life, _) = Life::record(seed, None::<F>);
        let first = told(&life).unwrap();
        let second = told(&life).unwrap();
        assert_eq!(first.len(), second.len(), "seed {seed}");
        for (step, (first, second)) in first.iter().zip(&second).enumerate() {
            assert_eq!(first, second, "seed {seed}, step {step}");
        }
    }
}
