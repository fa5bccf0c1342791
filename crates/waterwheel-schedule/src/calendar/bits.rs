use croner::CronComponent;

/// The values of a field, none of them above 63: a bit each. Values are `i8`, as jiff's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits(u64);

impl Bits {
    /// What a field of croner's lists.
    pub(super) fn of(field: &CronComponent) -> Bits {
        let values = field.values().into_iter();
        Bits(values.fold(0, |bits, value| bits | 1 << value))
    }

    /// The least value from `value` on, which is below 64.
    #[inline]
    pub(super) fn at_or_after(self, value: i8) -> Option<i8> {
        let rest = self.0 >> value;
        (rest != 0).then(|| value + rest.trailing_zeros() as i8)
    }

    /// The greatest value up to `value`, which is below 64 and may be -1.
    #[inline]
    pub(super) fn at_or_before(self, value: i8) -> Option<i8> {
        // By 64 bits for -1, which has no value before it.
        let rest = self.0.checked_shl((63 - value) as u32)?;
        (rest != 0).then(|| value - rest.leading_zeros() as i8)
    }

    #[inline]
    pub(super) fn first(self) -> Option<i8> {
        self.at_or_after(0)
    }

    #[inline]
    pub(super) fn last(self) -> Option<i8> {
        self.at_or_before(63)
    }

    #[inline]
    pub(super) fn contains(self, value: i8) -> bool {
        self.at_or_after(value) == Some(value)
    }
}
