//! A few lives. Many more by the program.

use waterwheel_durable_simulator::run;

#[test]
fn every_promise_is_kept_in_the_lives_of_some_seeds() {
    for seed in 0..2_000 {
        if let Err(broke) = run(seed, None) {
            panic!("{broke}");
        }
    }
}
