//! Ratios of the two clocks' figures in neighbouring slices: median, least and greatest.

use std::fmt;

/// The spread of a figure over several slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// Of how many values.
    pub(crate) count: usize,
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) greatest: f64,
}

impl Spread {
    /// `None` if there is no value. The median of an even number of values is the mean of the two in the middle.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (&least, &greatest) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 0 {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Some(Spread {
            count: values.len(),
            median,
            least,
            greatest,
        })
    }

    /// The spread of `ours / theirs`. The slices alternate, and ours is first. Each slice is paired with the one before it and with
    /// the one after it, so that neither order has an advantage. A pair that lacks a figure, or in which theirs is zero, is left
    /// out.
    pub(crate) fn of_ratios(ours: &[Option<f64>], theirs: &[Option<f64>]) -> Option<Spread> {
        let ours_first = ours.iter().zip(theirs);
        let theirs_first = ours.iter().skip(1).zip(theirs);
        let ratio = |(&ours, &theirs): (&Option<f64>, &Option<f64>)| {
            let theirs = theirs.filter(|&figure| figure > 0.0)?;
            Some(ours? / theirs)
        };
        Spread::of(ours_first.chain(theirs_first).filter_map(ratio))
    }
}

/// `1.02 (0.97–1.10)`, or `1.02` if all values are equal. The ends are rounded outwards, so that all values lie between them.
impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.least == self.greatest {
            return write!(formatter, "{:.2}", self.median);
        }
        // A little tolerance, because 1.1 times 100 is slightly more than 110.
        let least = (self.least * 100.0 + 1e-9).floor() / 100.0;
        let greatest = (self.greatest * 100.0 - 1e-9).ceil() / 100.0;
        write!(formatter, "{:.2} ({least:.2}–{greatest:.2})", self.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_whatever_the_order() {
        let spread = |count, median, least, greatest| {
            Some(Spread {
                count,
                median,
                least,
                greatest,
            })
        };
        assert_eq!(Spread::of([5.0, 1.0, 2.0]), spread(3, 2.0, 1.0, 5.0));
        assert_eq!(Spread::of([5.0, 1.0, 2.0, 3.0]), spread(4, 2.5, 1.0, 5.0));
        assert_eq!(Spread::of([7.0]), spread(1, 7.0, 7.0, 7.0));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn each_slice_is_paired_with_both_its_neighbours() {
        // In turn: 6 2 9 3 12 4.
        let ours = [6.0, 9.0, 12.0].map(Some);
        let theirs = [2.0, 3.0, 4.0].map(Some);
        // 6/2, 9/2, 9/3, 12/3, 12/4.
        let wanted = Spread {
            count: 5,
            median: 3.0,
            least: 3.0,
            greatest: 4.5,
        };
        assert_eq!(Spread::of_ratios(&ours, &theirs), Some(wanted));
        // Ctrl-C came before their last turn: 6/2, 9/2, 9/3, 12/3.
        let median = Spread::of_ratios(&ours, &theirs[..2]).map(|spread| spread.median);
        assert_eq!(median, Some(3.5));
    }

    #[test]
    fn a_pair_that_lacks_a_figure_is_left_out() {
        let ours = [None, Some(3.0), Some(8.0), Some(9.0)];
        let theirs = [Some(1.0), None, Some(2.0), Some(0.0)];
        let only = Spread::of_ratios(&ours, &theirs).expect("8/2, 3/1 and 9/2");
        assert_eq!(only.count, 3);
        assert_eq!([only.median, only.least, only.greatest], [4.0, 3.0, 4.5]);
        assert_eq!(Spread::of_ratios(&ours, &[]), None);
    }

    #[test]
    fn the_ends_are_rounded_outwards() {
        let shown = |values: [f64; 3]| Spread::of(values).map(|spread| spread.to_string());
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(shown([0.996, 1.004, 1.001]), text("1.00 (0.99–1.01)"));
        assert_eq!(shown([0.996; 3]), text("1.00"));
        assert_eq!(shown([1.1, 0.07, 0.58]), text("0.58 (0.07–1.10)"));
    }
}
