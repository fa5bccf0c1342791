//! Helpers that most of the tests use.

use waterwheel::wheel::{Tick, Verdict, Wheel};

/// Advances without a bound. Returns what was handed out.
pub(crate) fn advance<T>(wheel: &mut Wheel<T>, now: u64) -> Vec<T> {
    let handed = batch(wheel, now, usize::MAX);
    assert!(!wheel.has_backlog(), "nothing was to be left over");
    handed
}

/// Advances and serves at most `budget` timers. Returns what was handed out.
pub(crate) fn batch<T>(wheel: &mut Wheel<T>, now: u64, budget: usize) -> Vec<T> {
    let mut handed = Vec::new();
    let due = |_, payload| handed.push(payload);
    let progress = wheel.advance(Tick::new(now), budget, |_, _, _| Verdict::Due, due);
    assert_eq!(progress.expired, handed.len());
    assert_eq!(progress.backlog, wheel.has_backlog());
    handed
}

/// Sleeps until the next expiration and advances, again and again, as a driver does, until something is handed out.
/// Returns that, and the number of advances that it took.
pub(crate) fn sleep_until_due<T>(wheel: &mut Wheel<T>) -> (Vec<T>, usize) {
    for advances in 1.. {
        let next = wheel.next_expiration().expect("something is pending");
        assert!(next > wheel.now(), "a sleep until {next:?} is no sleep");
        let handed = advance(wheel, next.get());
        if !handed.is_empty() {
            return (handed, advances);
        }
    }
    unreachable!("there are not that many ticks")
}
