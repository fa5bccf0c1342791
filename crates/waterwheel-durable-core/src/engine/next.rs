/// The number of the first bucket that has rows, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The store is to be asked.
    Unknown,
    /// There is none.
    None,
    /// None before this one.
    At(i64),
}

impl Next {
    /// A row was written to this bucket.
    pub(super) fn lower(&mut self, number: i64) {
        *self = match *self {
            // The store is asked after the write.
            Next::Unknown => Next::Unknown,
            Next::None => Next::At(number),
            Next::At(first) => Next::At(first.min(number)),
        };
    }

    /// Whether there are rows in an earlier bucket, as far as it is known.
    pub(super) fn is_before(self, number: i64) -> bool {
        matches!(self, Next::At(first) if first < number)
    }

    /// The store has replied.
    pub(super) fn found(first: Option<i64>) -> Next {
        first.map_or(Next::None, Next::At)
    }
}
