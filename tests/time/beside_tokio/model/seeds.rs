//! The seeds that are played, and the report of those that differ.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use super::Difference;

/// The number of seeds, unless the environment sets another one.
pub(crate) fn number(usually: u64) -> RangeInclusive<u64> {
    let read = |name: &str| {
        let value = std::env::var(name).ok()?;
        let number = value.parse::<u64>();
        Some(number.unwrap_or_else(|_| panic!("{name} is a whole number, not {value:?}")))
    };
    match (read("WATERWHEEL_SEED"), read("WATERWHEEL_SEEDS")) {
        (Some(seed), _) => seed..=seed,
        (None, number) => 1..=number.unwrap_or(usually),
    }
}

/// Plays the script of each seed.
///
/// # Panics
///
/// If one differs, with the number of seeds that differ, the kinds of difference, and the first seed of
/// each kind reduced to the steps that are needed.
pub(crate) fn check<S: Clone + Debug>(
    seeds: RangeInclusive<u64>,
    write: impl Fn(u64) -> Vec<S>,
    differences: impl Fn(&[S]) -> Vec<Difference>,
) {
    let mut kinds: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for seed in seeds.clone() {
        for found in differences(&write(seed)) {
            let seeds = kinds.entry(found.what).or_default();
            if seeds.last() != Some(&seed) {
                seeds.push(seed);
            }
        }
    }
    let mut report = String::new();
    for (what, differ) in &kinds {
        let (number, first) = (differ.len(), differ[0]);
        let fails = |script: &[S]| differences(script).iter().any(|found| found.what == *what);
        let script = reduce(write(first), fails);
        let _ = writeln!(
            report,
            "\n{what}: {number} of seeds {seeds:?}, first {first}"
        );
        for (step, op) in script.iter().enumerate() {
            let _ = writeln!(report, "{step:4} {op:?}");
        }
        for found in differences(&script).iter().take(3) {
            let _ = writeln!(report, "{found}");
        }
    }
    assert!(kinds.is_empty(), "{report}");
}

/// Leaves out steps as long as the script fails without them.
fn reduce<S: Clone>(mut script: Vec<S>, fails: impl Fn(&[S]) -> bool) -> Vec<S> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let begin = Instant::now();
    let mut size = script.len() / 2;
    while size > 0 {
        let before = script.len();
        let mut from = 0;
        while from < script.len() && begin.elapsed() < PATIENCE {
            let to = (from + size).min(script.len());
            let rest = [&script[..from], &script[to..]].concat();
            if fails(&rest) {
                script = rest;
            } else {
                from = to;
            }
        }
        if size > 1 || script.len() == before {
            size /= 2;
        }
    }
    script
}
