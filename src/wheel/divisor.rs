/// A number to divide by, which stays the same for long and is not known to the compiler.
///
/// Divides by multiplying with the reciprocal, in 3 cycles where a division takes about 15. (A separate branch for
/// the most frequent divisor does not help: the compiler sees that both branches compute the same, and merges them.)
#[derive(Debug, Clone, Copy)]
pub(crate) struct Divisor {
    divisor: u64,
    /// 2⁶⁴ / `divisor`, rounded down, and at most 2⁶⁴ − 1.
    reciprocal: u64,
}

impl Divisor {
    /// For a divisor from 1 to 2³⁰.
    pub(crate) fn new(divisor: u32) -> Divisor {
        assert!(divisor > 0 && divisor <= 1 << 30);
        Divisor {
            divisor: u64::from(divisor),
            reciprocal: u64::MAX / u64::from(divisor),
        }
    }

    pub(crate) fn get(self) -> u64 {
        self.divisor
    }

    /// `dividend / divisor`
    #[inline]
    pub(crate) fn divide(self, dividend: u64) -> u64 {
        // With r the reciprocal and r × divisor = 2⁶⁴ − 1 − e, where e < divisor: for a dividend n of
        // quotient q, (n + 1) × r is less than (q + 1) × 2⁶⁴, and at least q × 2⁶⁴ if r is not less
        // than q × (1 + e), which is at most n.
        if dividend >= self.reciprocal {
            return self.divide_large(dividend);
        }
        let product = u128::from(dividend + 1) * u128::from(self.reciprocal);
        (product >> u64::BITS) as u64
    }

    #[cold]
    fn divide_large(self, dividend: u64) -> u64 {
        dividend / self.divisor
    }

    /// `dividend % divisor`
    #[inline]
    pub(crate) fn remainder(self, dividend: u64) -> u64 {
        dividend - self.divide(dividend) * self.divisor
    }
}

#[cfg(test)]
mod tests {
    use super::Divisor;

    #[test]
    fn divides_as_division_does() {
        for divisor in [
            1,
            2,
            3,
            7,
            10,
            60,
            999,
            1_000,
            10_000,
            100_000,
            1_000_000,
            999_999_999,
            1 << 30,
        ] {
            let by = Divisor::new(divisor);
            let divisor = u64::from(divisor);
            for quotient in [
                0,
                1,
                2,
                59,
                1_000_003,
                by.reciprocal / divisor,
                u64::MAX / divisor,
            ] {
                let exact = quotient * divisor;
                for dividend in [exact.wrapping_sub(1), exact, exact.saturating_add(1)] {
                    assert_eq!(
                        by.divide(dividend),
                        dividend / divisor,
                        "{dividend} / {divisor}"
                    );
                    assert_eq!(by.remainder(dividend), dividend % divisor);
                }
            }
        }
    }
}
