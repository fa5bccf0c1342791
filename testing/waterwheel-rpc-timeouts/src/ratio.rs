//! The ratio of the two clocks' figures, slice by slice.

use std::fmt;

use waterwheel_bench_kit::Spread;

/// Ratios of neighbouring slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    /// The number of ratios.
    pub(crate) pairs: usize,
    pub(crate) spread: Spread,
}

impl Ratio {
    /// `ours / theirs`. The slices alternate, and ours is first. Each slice is paired with the one before it and with the one
    /// after it, so that neither order has an advantage. A pair that lacks a figure, or in which theirs is zero, is left out.
    pub(crate) fn of(ours: &[Option<f64>], theirs: &[Option<f64>]) -> Option<Ratio> {
        let ours_first = ours.iter().zip(theirs);
        let theirs_first = ours.iter().skip(1).zip(theirs);
        let ratio = |(&ours, &theirs): (&Option<f64>, &Option<f64>)| {
            let theirs = theirs.filter(|&figure| figure > 0.0)?;
            Some(ours? / theirs)
        };
        let pairs: Vec<f64> = ours_first.chain(theirs_first).filter_map(ratio).collect();
        Some(Ratio {
            pairs: pairs.len(),
            spread: Spread::of_finite(pairs)?,
        })
    }
}

/// `1.02 (0.97–1.10)`, or `1.02` if all values are equal. The ends are rounded outwards, so that all values lie between them.
impl fmt::Display for Ratio {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spread { median, min, max } = self.spread;
        if min == max {
            return write!(formatter, "{median:.2}");
        }
        // A little tolerance, because 1.1 times 100 is slightly more than 110.
        let least = (min * 100.0 + 1e-9).floor() / 100.0;
        let greatest = (max * 100.0 - 1e-9).ceil() / 100.0;
        write!(formatter, "{median:.2} ({least:.2}–{greatest:.2})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(pairs: usize, median: f64, min: f64, max: f64) -> Ratio {
        let spread = Spread { median, min, max };
        Ratio { pairs, spread }
    }

    #[test]
    fn each_slice_is_paired_with_both_its_neighbours() {
        // In turn: 6 2 9 3 12 4.
        let ours = [6.0, 9.0, 12.0].map(Some);
        let theirs = [2.0, 3.0, 4.0].map(Some);
        // 6/2, 9/2, 9/3, 12/3, 12/4.
        let wanted = ratio(5, 3.0, 3.0, 4.5);
        assert_eq!(Ratio::of(&ours, &theirs), Some(wanted));
        // Ctrl-C came before their last turn: 6/2, 9/2, 9/3, 12/3.
        let median = Ratio::of(&ours, &theirs[..2]).map(|ratio| ratio.spread.median);
        assert_eq!(median, Some(3.5));
    }

    #[test]
    fn a_pair_that_lacks_a_figure_is_left_out() {
        let ours = [None, Some(3.0), Some(8.0), Some(9.0)];
        let theirs = [Some(1.0), None, Some(2.0), Some(0.0)];
        assert_eq!(Ratio::of(&ours, &theirs), Some(ratio(3, 4.0, 3.0, 4.5)));
        assert_eq!(Ratio::of(&ours, &[]), None);
    }

    #[test]
    fn the_ends_are_rounded_outwards() {
        let shown = |values: [f64; 3]| {
            let spread = Spread::of(values.to_vec());
            Ratio { pairs: 3, spread }.to_string()
        };
        assert_eq!(shown([0.996, 1.004, 1.001]), "1.00 (0.99–1.01)");
        assert_eq!(shown([0.996; 3]), "1.00");
        assert_eq!(shown([1.1, 0.07, 0.58]), "0.58 (0.07–1.10)");
    }
}
