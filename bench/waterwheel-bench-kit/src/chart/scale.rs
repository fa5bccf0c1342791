//! Maps values to places on the card, and chooses the ticks.

/// An axis: maps the values between its ends to the pixels between its ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    kind: Kind,
    values: (f64, f64),
    pixels: (f64, f64),
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Equal steps for equal differences.
    Linear,
    /// Equal steps for equal ratios; for values above 0.
    Log,
}

impl Scale {
    pub(super) fn new(kind: Kind, values: (f64, f64), pixels: (f64, f64)) -> Self {
        Self {
            kind,
            values,
            pixels,
        }
    }

    /// A linear scale from 0.
    pub(super) fn linear(to: f64, pixels: f64) -> Self {
        Self::new(Kind::Linear, (0.0, to), (0.0, pixels))
    }

    /// The place of a value. A value beyond an end is placed at that end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let ((from, to), (start, end)) = (self.values, self.pixels);
        let share = match self.kind {
            Kind::Linear => (value - from) / (to - from),
            Kind::Log => (value / from).ln() / (to / from).ln(),
        };
        start + share.clamp(0.0, 1.0) * (end - start)
    }

    /// Whether a value is beyond the upper end.
    pub(super) fn is_beyond(&self, value: f64) -> bool {
        value > self.values.1
    }

    /// About this many round values, from one end to the other.
    pub(super) fn ticks(&self, about: usize) -> Vec<f64> {
        match self.kind {
            Kind::Linear => round_steps(self.values, about),
            Kind::Log => round_decades(self.values, about),
        }
    }
}

/// The ends of a logarithmic axis that holds all values: round ones, slightly beyond.
pub(super) fn round_ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let positive = values.filter(|value| value.is_finite() && *value > 0.0);
    let (min, max) = positive.fold((f64::INFINITY, 0.0_f64), |(min, max), value| {
        (min.min(value), max.max(value))
    });
    if max == 0.0 {
        return None;
    }
    let near = |value: f64| ROUND.map(|round| round * decade(value)).into_iter();
    let below = |value: f64| near(value).rev().find(|round| *round <= value);
    let above = |value: f64| near(value).find(|round| *round >= value);
    let low = below(min * 0.9).unwrap_or(min);
    let high = above(max * 1.05).unwrap_or(10.0 * decade(max));
    Some((low, high))
}

/// The steps of round numbers.
const ROUND: [f64; 3] = [1.0, 2.0, 5.0];

fn decade(value: f64) -> f64 {
    10_f64.powi(value.log10().floor() as i32)
}

fn round_steps((from, to): (f64, f64), about: usize) -> Vec<f64> {
    let rough = (to - from) / about as f64;
    let decade = decade(rough);
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|round| round * decade)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(rough);
    let first = (from / step - 1e-9).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    (first..=last).map(|index| index as f64 * step).collect()
}

/// The decades; if these are too few, the values between them too.
fn round_decades((from, to): (f64, f64), about: usize) -> Vec<f64> {
    let decades = from.log10().floor() as i32..=to.log10().ceil() as i32;
    let inside = |value: &f64| *value >= from * 0.999 && *value <= to * 1.001;
    let of = |rounds: &[f64]| -> Vec<f64> {
        let all = decades
            .clone()
            .flat_map(|power| rounds.iter().map(move |r| r * 10_f64.powi(power)));
        all.filter(inside).collect()
    };
    let fine = of(&ROUND);
    if fine.len() <= about * 2 {
        fine
    } else {
        of(&ROUND[..1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_placed_off_the_axis() {
        let linear = Scale::new(Kind::Linear, (0.0, 10.0), (100.0, 200.0));
        let places = [-1.0, 0.0, 5.0, 10.0, 1e9].map(|v| linear.place(v));
        assert_eq!(places, [100.0, 100.0, 150.0, 200.0, 200.0]);
        let log = Scale::new(Kind::Log, (1.0, 100.0), (0.0, 50.0));
        let places = [0.0, 1.0, 10.0, 1e9].map(|v| log.place(v).round());
        assert_eq!(places, [0.0, 0.0, 25.0, 50.0]);
    }

    #[test]
    fn ticks_are_round_and_reach_both_ends() {
        let ticks = Scale::linear(800.0, 1.0).ticks(4);
        assert_eq!(ticks, [0.0, 200.0, 400.0, 600.0, 800.0]);
        let log = Scale::new(Kind::Log, (50.0, 2000.0), (0.0, 1.0)).ticks(4);
        let rounded: Vec<_> = log.iter().map(|v| v.round()).collect();
        assert_eq!(rounded, [50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0]);
        // A log axis holds the values that it was made for.
        let ends = round_ends([73.0, f64::NAN, 749.0].into_iter());
        assert_eq!(ends, Some((50.0, 1000.0)));
        assert!(round_ends([f64::NAN, 0.0].into_iter()).is_none());
    }
}
