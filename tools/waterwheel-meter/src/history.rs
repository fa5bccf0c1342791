//! Readings of the last minute, a second apart: rates, and the lateness of timers.

use std::collections::VecDeque;
use std::time::Duration;

use crate::reading::{Late, Reading, Totals};

/// A minute has sixty seconds between sixty-one readings.
const MOST: usize = 61;
/// The least time between readings. Frames are only roughly a quarter of a second apart.
const APART: Duration = Duration::from_millis(900);

#[derive(Debug, Default)]
pub(crate) struct History {
    readings: VecDeque<(Duration, Totals)>,
}

impl History {
    /// Keeps the totals, if the last ones are a second old.
    pub(crate) fn add(&mut self, reading: &Reading) {
        let last = self.readings.back().map(|it| it.0);
        if last.is_some_and(|last| reading.up < last + APART) {
            return;
        }
        if self.readings.len() == MOST {
            self.readings.pop_front();
        }
        self.readings
            .push_back((reading.up, reading.totals.clone()));
    }

    /// The growth of a total in each second, the latest one last.
    pub(crate) fn rates(&self, total: impl Fn(&Totals) -> u64) -> Vec<f64> {
        let later = self.readings.iter().skip(1);
        self.readings
            .iter()
            .zip(later)
            .map(|((before, from), (after, to))| {
                let grown = total(to).saturating_sub(total(from));
                grown as f64 / (*after - *before).as_secs_f64()
            })
            .collect()
    }

    /// The lateness of the timers of the last minute.
    pub(crate) fn late(&self) -> Late {
        match (self.readings.front(), self.readings.back()) {
            (Some((_, first)), Some((_, last))) => last.late.since(&first.late),
            _ => Late::default(),
        }
    }
}

/// A row of rates: its name, and the total that it is computed from.
pub(crate) type Row = (&'static str, fn(&Totals) -> u64);

pub(crate) const ROWS: [Row; 5] = [
    ("armed", |totals| totals.armed),
    ("fired", |totals| totals.fired),
    ("cancelled", |totals| totals.cancelled),
    ("cascaded", |totals| totals.cascaded),
    ("turns", |totals| totals.turns),
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{History, MOST};
    use crate::sample;

    #[test]
    fn rates_are_by_the_second_and_of_the_last_minute() {
        let mut history = History::default();
        assert!(history.rates(|totals| totals.fired).is_empty());
        let mut reading = sample::reading();
        for quarter in 0..400_u64 {
            reading.up = Duration::from_millis(250 * quarter);
            reading.totals.fired = 10 * quarter * quarter;
            history.add(&reading);
        }
        let rates = history.rates(|totals| totals.fired);
        assert_eq!(rates.len(), MOST - 1);
        // From quarter 392 to 396.
        assert_eq!(rates.last(), Some(&f64::from(10 * (396 * 396 - 392 * 392))));
        assert!(rates.is_sorted());
    }
}
