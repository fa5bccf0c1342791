//! Futures that are polled, reset and dropped by hand.

use super::model::{Difference, Kind, Op, Ours, Tokio, check, differences, number, play, write};
use crate::support::Dice;

fn beside_tokio(script: &[Op]) -> Vec<Difference> {
    differences(&play::<Tokio>(script), &play::<Ours>(script))
}

#[test]
fn a_few_timers_are_ready_and_woken_as_tokios_are() {
    check(number(400), |seed| write(seed, Kind::Few), beside_tokio);
}

#[test]
fn thousands_of_timers_are_woken_in_the_order_of_tokios() {
    check(number(40), |seed| write(seed, Kind::Many), beside_tokio);
}

// The control: differences above come neither from chance nor from the comparison.
#[test]
fn tokios_timers_do_the_same_twice() {
    for seed in 1..=60 {
        let kind = match Dice(seed).roll(10) {
            0 => Kind::Many,
            _ => Kind::Few,
        };
        let script = write(seed, kind);
        let [first, second] = [play::<Tokio>(&script), play::<Tokio>(&script)];
        assert_eq!(first, second, "seed {seed}");
    }
}
