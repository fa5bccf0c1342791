//! When is what has found no space tried again?

use std::time::{Duration, Instant};

/// Up to 16 times as long as the first one.
const MAX_DOUBLED: u32 = 4;

/// It may write all that there is space for before it is refused again: so each pause is twice as long as the one before.
#[derive(Debug)]
pub(crate) struct Pause {
    first: Duration,
    since: Option<Instant>,
    /// How often it was refused again.
    times: u32,
}

impl Pause {
    /// One that has not begun.
    pub(crate) fn new(first: Duration) -> Pause {
        Pause {
            first,
            since: None,
            times: 0,
        }
    }

    /// Whether nothing has gone well since it began.
    pub(crate) fn is_on(&self) -> bool {
        self.since.is_some()
    }

    /// Whether it is too early to try again.
    pub(crate) fn lasts(&self) -> bool {
        let length = self.first.saturating_mul(1 << self.times.min(MAX_DOUBLED));
        self.since.is_some_and(|since| since.elapsed() < length)
    }

    pub(crate) fn times(&self) -> u32 {
        self.times
    }

    /// Something else has found no space either: if it is on, it lasts no longer for that.
    pub(crate) fn begin(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// It was tried and refused.
    pub(crate) fn refuse(&mut self) {
        self.times += u32::from(self.is_on());
        self.since = Some(Instant::now());
    }

    pub(crate) fn end(&mut self) {
        *self = Pause::new(self.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_twice_as_long_each_time_up_to_sixteen_times() {
        let mut pause = Pause::new(Duration::from_secs(100));
        assert!(!pause.is_on() && !pause.lasts());
        for seconds in [100, 200, 400, 800, 1_600, 1_600] {
            pause.refuse();
            let since = pause.since;
            // What else finds no space makes it no longer.
            pause.begin();
            assert_eq!(pause.since, since);
            for (ago, lasts) in [(seconds - 50, true), (seconds, false)] {
                pause.since = since.unwrap().checked_sub(Duration::from_secs(ago));
                assert_eq!(pause.lasts(), lasts, "{ago} of {seconds}");
            }
        }
        pause.end();
        assert!(!pause.is_on() && pause.times() == 0);
    }
}
