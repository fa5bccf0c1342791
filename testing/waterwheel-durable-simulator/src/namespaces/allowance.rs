/// A rate limit: a count per time, and a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The number of permits.
    pub count: u32,
    /// The time in which they become available.
    pub per_millis: u64,
    /// The number available at once, after a time without use.
    pub burst: u32,
}

/// How much later than by the limit a permit is certainly available, in microseconds: the engine rounds each time up.
const ROUNDED: i64 = 1_000;

/// The permits that a limit gives now, computed as a balance that grows each microsecond.
#[derive(Debug, Default)]
pub struct Allowance {
    /// The limit. `None` if there is none.
    limit: Option<Limit>,
    left: Left,
}

/// The balance in parts: a microsecond adds `count` parts, and a permit takes as many as its time has microseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Left {
    parts: i64,
    /// The time of the balance, in microseconds since boot.
    at: i64,
    /// When a permit of this limit, or of the previous one, was last taken.
    taken_at: Option<i64>,
    /// Whether that permit came from this limit.
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

    /// Takes a permit. Returns whether one was available.
    fn take(&mut self, at: i64, limit: Limit) -> bool {
        self.go_on(at, limit);
        self.taken_at = Some(at);
        self.is_returnable = true;
        self.parts -= limit.one();
        self.parts >= 0
    }

    /// When a permit is available, as far as is known now.
    fn next(&self, limit: Limit) -> i64 {
        let missing = (limit.one() - self.parts).max(0);
        self.at + (missing + limit.count() - 1) / limit.count()
    }

    /// Changes the limit. The new one begins when the old one would give a permit, or its own interval after the last one if sooner. The change gives
    /// none.
    fn change(&mut self, at: i64, before: Limit, limit: Limit) {
        self.go_on(at, before);
        // Rounded down, since the engine computes it in nanoseconds.
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
    /// The allowance of a limit that begins with `count` permits.
    fn with(limit: Option<Limit>, boot: u64, count: impl Fn(Limit) -> u32) -> Allowance {
        let left = Left {
            parts: limit.map_or(0, |it| i64::from(count(it)) * it.one()),
            at: boot.cast_signed(),
            taken_at: None,
            is_returnable: false,
        };
        Allowance { limit, left }
    }

    /// An allowance that begins with one permit, since earlier use is unknown.
    #[must_use]
    pub fn of_one(limit: Option<Limit>, boot: u64) -> Allowance {
        Allowance::with(limit, boot, |_| 1)
    }

    /// An allowance that begins with a full burst.
    #[must_use]
    pub fn of_burst(limit: Option<Limit>, boot: u64) -> Allowance {
        Allowance::with(limit, boot, |it| it.burst)
    }

    /// Replaces the limit from now on.
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

    /// Replaces the limit, and begins with a full burst.
    pub fn renew(&mut self, limit: Option<Limit>, boot: u64) {
        if self.limit != limit {
            *self = Allowance::of_burst(limit, boot);
        }
    }

    /// Takes a permit for something that has happened. Returns whether one was available.
    pub fn note(&mut self, boot: u64) -> bool {
        self.limit
            .is_none_or(|limit| self.left.take(boot.cast_signed(), limit))
    }

    /// Returns an unused permit that was taken then. It is available again if it was the last one.
    pub fn give_back(&mut self, boot: u64) {
        let left = &mut self.left;
        if let Some(limit) = self.limit
            && left.is_returnable
            && left.taken_at == Some(boot.cast_signed())
        {
            left.parts += limit.one();
        }
    }

    /// Whether a permit is certainly available.
    #[must_use]
    pub fn has_one(&self, boot: u64) -> bool {
        self.waits_at_most(boot) == 0
    }

    /// The number of microseconds for which there may be no permit.
    #[must_use]
    pub fn waits_at_most(&self, boot: u64) -> u64 {
        let wait = |limit: Limit| {
            let beyond = limit.one() + ROUNDED * limit.count() - self.left.parts;
            let at = self.left.at + (beyond.max(0) + limit.count() - 1) / limit.count();
            (at - boot.cast_signed()).max(0).unsigned_abs()
        };
        self.limit.map_or(0, wait)
    }

    /// The number of microseconds for which there is certainly no permit.
    #[must_use]
    pub fn waits_at_least(&self, boot: u64) -> u64 {
        let wait = |limit| (self.left.next(limit) - boot.cast_signed()).max(0);
        self.limit.map_or(0, wait).unsigned_abs()
    }
}
