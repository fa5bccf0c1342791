/// So many in this time, and so many more at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// How many.
    pub count: u32,
    /// In this time.
    pub per_millis: u64,
    /// And these beside.
    pub burst: u32,
}

/// When something has happened, in microseconds.
#[derive(Debug, Default)]
pub struct Windows {
    times: Vec<u64>,
    /// The last time, though it may be of no consequence for what came after it.
    last: Option<u64>,
}

impl Windows {
    /// All of it is of no consequence any more.
    pub fn clear(&mut self) {
        *self = Windows::default();
    }

    /// Another limit holds. It grants nothing: what is certain is still counted from the last time.
    pub fn change(&mut self) {
        self.times.clear();
    }

    /// It has happened by now, perhaps by another limit: what was before is of no consequence for what comes.
    pub fn restart(&mut self, at: u64) {
        self.times.clear();
        self.last = Some(at);
    }

    /// It has happened once more. Whether no window has more than the limit gives.
    pub fn note(&mut self, at: u64, limit: Limit) -> bool {
        self.times.push(at);
        self.last = Some(at);
        let mut count = 0;
        self.times.iter().rev().all(|from| {
            count += 1;
            let beyond = u64::saturating_sub(count, u64::from(limit.burst));
            beyond * limit.per_millis * 1_000 <= (at - from) * u64::from(limit.count)
        })
    }

    /// Whether it may certainly happen again: so long after the last time, there is always one.
    #[must_use]
    pub fn has_one(&self, at: u64, limit: Limit) -> bool {
        self.next(limit).is_none_or(|next| next <= at)
    }

    /// When it may certainly happen again. `None` if it may at any time.
    #[must_use]
    pub fn next(&self, limit: Limit) -> Option<u64> {
        let interval = (limit.per_millis * 1_000).div_ceil(u64::from(limit.count)) + 1;
        self.last.map(|last| last + interval)
    }
}
