/// So many in this time, and so many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// How many.
    pub count: u32,
    /// In this time.
    pub per_millis: u64,
    /// At once, after a time without any.
    pub burst: u32,
}

/// So much later than a limit gives one, in microseconds, it is certainly there: the engine rounds each time up.
const ROUNDED: i64 = 1_000;

/// How many a limit gives now, reckoned as what is left of it, to which each microsecond adds.
#[derive(Debug, Default)]
pub struct Allowance {
    /// `None`: there are always more.
    limit: Option<Limit>,
    left: Left,
}

/// In parts: a microsecond adds as many as the limit's count, and one takes as many as its time has microseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Left {
    parts: i64,
    /// In microseconds since boot.
    at: i64,
    /// When one was taken by this limit, or by the one before it.
    taken_at: Option<i64>,
    /// It was by this one.
    is_returnable: bool,
}

impl Limit {
    fn count(self) -> i64 {
        i64::from(self.count)
    }

    fn one(self) -> i64 {
        self.per_millis.cast_signed() * 1_000
    }
}

impl Left {
    fn go_on(&mut self, at: i64, limit: Limit) {
        let parts = self.parts + (at - self.at) * limit.count();
        self.parts = parts.min(i64::from(limit.burst) * limit.one());
        self.at = at;
    }

    /// Takes one. Whether there was one.
    fn take(&mut self, at: i64, limit: Limit) -> bool {
        self.go_on(at, limit);
        self.taken_at = Some(at);
        self.is_returnable = true;
        self.parts -= limit.one();
        self.parts >= 0
    }

    /// When there is one, as far as it is known now.
    fn next(&self, limit: Limit) -> i64 {
        let missing = (limit.one() - self.parts).max(0);
        self.at + (missing + limit.count() - 1) / limit.count()
    }

    /// Another limit begins where this one would have given one, or its own time after the last one if that is sooner. It gives none for the change.
    fn change(&mut self, at: i64, before: Limit, limit: Limit) {
        self.go_on(at, before);
        // Rounded down, as the engine knows it by the nanosecond.
        let by_the_other = self.at + (before.one() - self.parts).max(0) / before.count();
        let interval = limit.one() / limit.count();
        let first = self
            .taken_at
            .map_or(by_the_other, |taken| by_the_other.min(taken + interval));
        self.parts = limit.one() - (first - at).max(0) * limit.count();
        self.is_returnable = false;
    }
}

impl Allowance {
    /// The allowance of a limit that begins with so many.
    fn with(limit: Option<Limit>, boot: u64, count: impl Fn(Limit) -> u32) -> Allowance {
        let left = Left {
            parts: limit.map_or(0, |it| i64::from(count(it)) * it.one()),
            at: boot.cast_signed(),
            taken_at: None,
            is_returnable: false,
        };
        Allowance { limit, left }
    }

    /// It begins with one: it is not known what came before.
    #[must_use]
    pub fn of_one(limit: Option<Limit>, boot: u64) -> Allowance {
        Allowance::with(limit, boot, |_| 1)
    }

    /// It begins with all that there may be at once.
    #[must_use]
    pub fn of_burst(limit: Option<Limit>, boot: u64) -> Allowance {
        Allowance::with(limit, boot, |it| it.burst)
    }

    /// Another limit holds from now on.
    pub fn change(&mut self, limit: Option<Limit>, boot: u64) {
        match (self.limit, limit) {
            (before, limit) if before == limit => {}
            (Some(before), Some(limit)) => {
                self.left.change(boot.cast_signed(), before, limit);
                self.limit = Some(limit);
            }
            _ => *self = Allowance::of_one(limit, boot),
        }
    }

    /// The allowance of a limit that begins with all that there may be.
    pub fn renew(&mut self, limit: Option<Limit>, boot: u64) {
        if self.limit != limit {
            *self = Allowance::of_burst(limit, boot);
        }
    }

    /// One has come. Whether the limit gave one.
    pub fn note(&mut self, boot: u64) -> bool {
        self.limit
            .is_none_or(|limit| self.left.take(boot.cast_signed(), limit))
    }

    /// One that was taken then was not used. It is there again if it was the last one.
    pub fn give_back(&mut self, boot: u64) {
        let left = &mut self.left;
        if let Some(limit) = self.limit
            && left.is_returnable
            && left.taken_at == Some(boot.cast_signed())
        {
            left.parts += limit.one();
        }
    }

    /// Whether there is certainly one.
    #[must_use]
    pub fn has_one(&self, boot: u64) -> bool {
        self.waits_at_most(boot) == 0
    }

    /// For how many microseconds there may be none.
    #[must_use]
    pub fn waits_at_most(&self, boot: u64) -> u64 {
        let wait = |limit: Limit| {
            let beyond = limit.one() + ROUNDED * limit.count() - self.left.parts;
            let at = self.left.at + (beyond.max(0) + limit.count() - 1) / limit.count();
            (at - boot.cast_signed()).max(0).unsigned_abs()
        };
        self.limit.map_or(0, wait)
    }

    /// For how many microseconds there is certainly none.
    #[must_use]
    pub fn waits_at_least(&self, boot: u64) -> u64 {
        let wait = |limit| (self.left.next(limit) - boot.cast_signed()).max(0);
        self.limit.map_or(0, wait).unsigned_abs()
    }
}
