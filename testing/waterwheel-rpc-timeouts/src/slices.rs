//! How the run is cut into slices. The clocks take turns, A B A B …, so that disturbances of the machine hit both.
//!
//! A slice takes 7/5 of a timeout, and at least half a second. The first 11/10 of a timeout in each slice are not counted: in
//! that time the other clock's last calls end, and this clock's calls reach their full number and begin to time out. A run has as
//! many pairs of slices as fit, at least one, and they share its length. Many short slices give a better median than few long
//! ones, because a disturbance of the machine lasts for several short slices.

use std::time::Duration;

const SHORTEST: Duration = Duration::from_millis(500);

/// More pairs would not make the median better. A long run has longer slices instead.
const MOST_PAIRS: u32 = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slices {
    /// An even number: a pair has one slice of each clock, or two slices of a clock that runs alone.
    pub(crate) count: u32,
    pub(crate) length: Duration,
    /// The time at the beginning of each slice that is not counted.
    pub(crate) settling: Duration,
}

impl Slices {
    pub(crate) fn new(whole: Duration, timeout: Duration) -> Self {
        let shortest = (timeout * 7 / 5).max(SHORTEST);
        let pairs = whole.as_nanos() / (2 * shortest).as_nanos();
        let pairs = pairs.clamp(1, MOST_PAIRS.into()) as u32;
        let length = whole / (2 * pairs);
        Slices {
            count: 2 * pairs,
            length,
            // If the slice is too short for that, its last fifth is counted.
            settling: (timeout * 11 / 10).min(length * 4 / 5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(500);

    fn seconds(whole: u64) -> Slices {
        Slices::new(Duration::from_secs(whole), TIMEOUT)
    }

    #[test]
    fn ten_seconds_are_seven_pairs_of_slices_and_two_are_one() {
        let wanted = Slices {
            count: 14,
            length: Duration::from_secs(10) / 14,
            settling: Duration::from_millis(550),
        };
        assert_eq!(seconds(10), wanted);
        for whole in [1, 2] {
            let length = Duration::from_secs(whole) / 2;
            assert_eq!((seconds(whole).count, seconds(whole).length), (2, length));
        }
    }

    #[test]
    fn the_slices_fill_the_run_and_none_is_too_short() {
        for whole in 1..=1_000 {
            for timeout in [1, 499, 500, 501, 2_000, 60_000] {
                let (timeout, whole) = (Duration::from_millis(timeout), Duration::from_secs(whole));
                let slices = Slices::new(whole, timeout);
                let rest = whole - slices.count * slices.length;
                assert!(rest < Duration::from_micros(1), "{slices:?} of {whole:?}");
                let must = (timeout * 7 / 5).max(SHORTEST).min(whole / 2);
                assert!(slices.length >= must, "{slices:?} of {whole:?}");
                assert!((2..=2 * MOST_PAIRS).contains(&slices.count), "{slices:?}");
                assert_eq!(slices.count % 2, 0, "{slices:?}");
            }
        }
    }

    #[test]
    fn a_call_that_times_out_ends_before_the_next_slice_is_counted() {
        for whole in [2, 10, 11, 600, 86_400] {
            let slices = seconds(whole);
            assert!(slices.settling >= TIMEOUT * 11 / 10, "{slices:?}");
            assert!(slices.settling <= slices.length * 4 / 5, "{slices:?}");
        }
    }
}
