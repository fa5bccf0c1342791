//! What a handler sees, from many workers at once.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// When each delivery was, and how late, in µs.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<Vec<(Instant, i64)>>);

impl Seen {
    /// One that does not move what it has, which would take milliseconds, while so many are noted.
    pub(crate) fn with_room_for(count: usize) -> Seen {
        Seen(Mutex::new(Vec::with_capacity(count)))
    }

    pub(crate) fn one(&self, micros_late: i64) {
        self.lock().push((Instant::now(), micros_late));
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn take(&self) -> Vec<(Instant, i64)> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Instant, i64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How late a delivery is now, by a wall clock that is so far ahead of the machine's; less than 0 if early.
pub(crate) fn micros_late(due: SystemTime, ahead: Duration) -> i64 {
    let now = SystemTime::now() + ahead;
    let late = match now.duration_since(due) {
        Ok(late) => i64::try_from(late.as_nanos()),
        Err(early) => i64::try_from(early.duration().as_nanos()).map(|nanos| -nanos),
    };
    late.map_or(i64::MAX, |nanos| nanos.div_euclid(1_000))
}

/// The most that came in any window of this length.
pub(crate) fn most_in(window: Duration, mut times: Vec<Instant>) -> usize {
    times.sort_unstable();
    let mut first = 0;
    let lengths = times.iter().enumerate().map(|(last, time)| {
        while *time - times[first] >= window {
            first += 1;
        }
        last + 1 - first
    });
    lengths.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_window_is_found_wherever_it_lies() {
        let start = Instant::now();
        let at = |millis: &[u64]| {
            let times = millis.iter();
            times
                .map(|millis| start + Duration::from_millis(*millis))
                .collect()
        };
        let second = Duration::from_secs(1);
        assert_eq!(most_in(second, at(&[])), 0);
        // One at the end of the second is in the next one.
        assert_eq!(most_in(second, at(&[0, 1_000, 2_000])), 1);
        assert_eq!(most_in(second, at(&[0, 999, 1_000])), 2);
        assert_eq!(
            most_in(second, at(&[2_400, 0, 1_600, 2_000, 1_500, 900])),
            4
        );
    }
}
