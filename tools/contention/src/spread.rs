//! Medians with the range of what was measured.

/// The median of some values, with the lowest and the highest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Of an even number of values, the median is the mean of the middle two. Panics if there is no value.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        Spread {
            median: f64::midpoint(values[(values.len() - 1) / 2], values[middle]),
            least: values[0],
            most: values[values.len() - 1],
        }
    }

    /// Whether all values are on one side of this one. Not if one of them is no number.
    pub(crate) fn is_beside(&self, value: f64) -> bool {
        self.most < value || self.least > value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_whatever_the_order() {
        let spread = Spread::of([5.0, 1.0, 2.0]);
        assert_eq!([spread.least, spread.median, spread.most], [1.0, 2.0, 5.0]);
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 9.0]).median, 3.0);
        assert_eq!(Spread::of([7.0]).median, 7.0);
        assert!(!spread.is_beside(1.0) && !spread.is_beside(5.0) && spread.is_beside(5.1));
        assert!(!Spread::of([f64::NAN, 2.0]).is_beside(3.0));
    }
}
