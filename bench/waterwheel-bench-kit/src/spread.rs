//! The median of several values, and their range.

use serde::{Deserialize, Deserializer, Serialize};

/// The median of the rounds, and their range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The median: for an even number, the mean of the two middle values.
    #[serde(deserialize_with = "null_is_nan")]
    pub median: f64,
    /// The least.
    #[serde(deserialize_with = "null_is_nan")]
    pub min: f64,
    /// The greatest.
    #[serde(deserialize_with = "null_is_nan")]
    pub max: f64,
}

impl Spread {
    /// The spread of at least one value.
    ///
    /// # Panics
    /// If there is none.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Self {
            median: f64::midpoint(low, high),
            min: values[0],
            max: values[values.len() - 1],
        }
    }

    /// The spread of those values that are finite. `None` if there is none.
    pub fn of_finite(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().filter(|it| it.is_finite()).collect();
        (!values.is_empty()).then(|| Self::of(values))
    }
}

/// The least value that this share of all values does not exceed, from 0 to 1. The values are sorted. `None` if there is none.
pub fn quantile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// JSON has no NaN.
fn null_is_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_whatever_the_order() {
        let spread = |median, min, max| Some(Spread { median, min, max });
        assert_eq!(Spread::of_finite([5.0, 1.0, 2.0]), spread(2.0, 1.0, 5.0));
        let four = [5.0, 1.0, 2.0, 3.0];
        assert_eq!(Spread::of_finite(four), spread(2.5, 1.0, 5.0));
        assert_eq!(Spread::of_finite([f64::NAN, 7.0]), spread(7.0, 7.0, 7.0));
        assert_eq!(Spread::of_finite([f64::INFINITY]), None);
    }

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let values: Vec<u32> = (1..=1_000).collect();
        let shares = [0.0, 0.5, 0.99, 0.999, 1.0];
        let found = shares.map(|share| quantile(&values, share));
        assert_eq!(found, [1, 500, 990, 999, 1_000].map(Some));
        assert_eq!(quantile::<u32>(&[], 0.5), None);
    }
}
