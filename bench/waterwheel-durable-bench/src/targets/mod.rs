//! What is wanted, and whether it is reached.
//!
//! | file | question |
//! |---|---|
//! | `engine` | what do timers cost without policies? |
//! | `service` | do namespaces, keys and retention cost what they may, and delay no other? |
//! | `target` | what is a target, and when is it reached? |

mod engine;
mod service;
mod target;

pub(crate) use target::{Target, Unit, Want};

/// The tables, by the names that the page has for them.
pub(crate) const ENGINE: &[Target] = &engine::TARGETS;
pub(crate) const SERVICE: &[Target] = &service::TARGETS;

#[cfg(test)]
mod tests {
    use waterwheel_bench_kit::Spread;

    use super::target::Figure;
    use super::*;
    use crate::sample::Sample;

    #[test]
    fn each_target_is_of_a_row() {
        let is_row = |name| crate::rows::ALL.iter().any(|row| row.name == name);
        for target in ENGINE.iter().chain(SERVICE) {
            assert!(is_row(target.row), "{}", target.row);
            if let Figure::Beside(other, _) = target.figure {
                assert!(is_row(other), "{other}");
            }
        }
    }

    #[test]
    fn a_limit_that_is_not_used_up_misses_its_target() {
        for (row, limit) in [("limited", 100.0), ("outage-fails", 1_000.0)] {
            let mut sample = Sample::default();
            sample.set("limited a second", limit);
            let must = |target: &Target| match target.figure {
                Figure::Of(figure) => figure(&sample).map(|_| target.must),
                Figure::Beside(..) => None,
            };
            let targets = SERVICE.iter().filter(|target| target.row == row);
            let musts: Vec<Want> = targets.filter_map(must).collect();
            let [must] = musts[..] else {
                panic!("{row} has {} targets of this figure", musts.len());
            };
            let is_met = |parts: &[f64]| {
                let rounds = parts.iter().map(|part| part * limit).collect();
                must.is_met(Spread::of(rounds))
            };
            assert_eq!(is_met(&[1.0, 0.95, 1.02]), Some(true), "{row}");
            for part in [0.0, 0.5, 0.94] {
                assert_eq!(is_met(&[1.0, part, 1.0]), Some(false), "{row}: {part}");
            }
        }
    }
}
