//! For which instant tokio is to be asked.
//!
//! tokio counts whole milliseconds since its runtime was built. It rounds a deadline *up* to one of them, and now *down*, and then
//! waits for the difference. So it wakes up to two milliseconds after the deadline. But what it waits for is a whole number of
//! milliseconds from the moment at which the worker begins to wait. The best is the least such number that reaches the target, and
//! tokio takes it if it is asked for the right one of its milliseconds. Which that is depends on when the worker begins to wait. It
//! is taken to do so at once. If it has tasks to run first, the wake may come a millisecond later, or too early, and then again.
//! (ARCHITECTURE.md has the figures.)
//!
//! Where these milliseconds begin, tokio does not say. But a sleep of tokio's that is polled is ready if and only if its
//! millisecond is not after the last one that tokio has processed. A search for the latest instant that is ready finds the
//! boundary. It fails if another worker turns tokio's clock meanwhile; then the driver looks again when it runs next.
//!
//! A wrong answer costs some lateness, or a turn in which nothing is due, and no more than that.

use tokio::time::{Duration, Instant};

use crate::clock::Clock;
use crate::driver::host;

const MILLISECOND: Duration = Duration::from_millis(1);

/// How often the boundary is looked for. It moves while another worker turns tokio's clock.
const TRIES: usize = 4;

/// Long before any runtime was built.
const LONG_AGO: Duration = Duration::from_secs(86_400 * 365);

/// An instant at which one of tokio's milliseconds begins.
pub(super) struct Milliseconds(Instant);

impl Milliseconds {
    /// To be called in the context of the clock's home runtime. The clock cannot be paused.
    pub(super) fn find(clock: &Clock) -> Option<Milliseconds> {
        let mut is_processed = host::is_processed_by_tokio(clock.now());
        let long_ago = clock.now().checked_sub(LONG_AGO)?;
        if !is_processed(long_ago) {
            // These are not tokio's usual timers: with its alternative ones, a sleep that was reset is never ready at the next poll.
            return None;
        }
        (0..TRIES)
            .find_map(|_| boundary(clock.now(), &mut is_processed))
            .map(Milliseconds)
    }

    /// The instant to ask tokio for, at `now`, so that it wakes as soon after `target` as it can.
    pub(super) fn ask_for(&self, target: Instant, now: Instant) -> Instant {
        let begin = self.0;
        if now < begin || target <= now {
            return target;
        }
        // How far each is into its millisecond. tokio wakes as far into one as the worker is when it begins to wait.
        let [target_into, now_into] = [target, now].map(|at| into_millisecond(at - begin));
        if target_into <= now_into {
            return target - target_into;
        }
        target - target_into + MILLISECOND
    }
}

fn into_millisecond(since: Duration) -> Duration {
    Duration::from_nanos(u64::from(since.subsec_nanos()) % MILLISECOND.as_nanos() as u64)
}

/// The latest instant that is processed; `None` if it has moved during the search.
fn boundary(now: Instant, mut is_processed: impl FnMut(Instant) -> bool) -> Option<Instant> {
    let mut step = MILLISECOND;
    let mut after = now + 2 * MILLISECOND;
    let mut until = loop {
        let at = after.checked_sub(step)?;
        if is_processed(at) {
            break at;
        }
        after = at;
        step = step.saturating_mul(2);
    };
    while after - until > Duration::from_nanos(1) {
        let middle = until + (after - until) / 2;
        if is_processed(middle) {
            until = middle;
        } else {
            after = middle;
        }
    }
    (!is_processed(after)).then_some(until)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::runtime::Builder;
    use tokio::time::{Duration, Instant};

    use super::{MILLISECOND, Milliseconds, boundary};
    use crate::clock::Clock;
    use crate::driver::host;
    use crate::wheel::Resolution;

    /// When a worker wakes that asks tokio at `now` for `asked`, in nanoseconds since a millisecond began, and waits at once.
    fn wakes_at(asked: u64, now: u64) -> u64 {
        let nanos = MILLISECOND.as_nanos() as u64;
        now + (asked.div_ceil(nanos) - now / nanos) * nanos
    }

    #[test]
    fn a_worker_that_waits_at_once_wakes_within_a_millisecond() {
        let begin = Instant::now();
        let milliseconds = Milliseconds(begin);
        let at = |nanos| begin + Duration::from_nanos(nanos);
        let odd = [0, 1, 200_000, 499_999, 500_000, 999_999];
        for (now_ms, ahead_ms) in [(0, 0), (0, 1), (7, 0), (7, 64), (1_000, 86_400_000)] {
            for now in odd.map(|part| now_ms * 1_000_000 + part) {
                for target in odd.map(|part| (now_ms + ahead_ms) * 1_000_000 + part) {
                    if target <= now {
                        continue;
                    }
                    let asked = milliseconds.ask_for(at(target), at(now));
                    let asked = (asked - begin).as_nanos() as u64;
                    let late = wakes_at(asked, now).checked_sub(target);
                    assert!(late.is_some_and(|late| late < 1_000_000), "{now} {target}");
                    // A worker that begins to wait later, but not after the target, is less than two milliseconds late, or early.
                    for waits in odd
                        .map(|part| now + part)
                        .into_iter()
                        .filter(|at| *at < target)
                    {
                        assert!(
                            wakes_at(asked, waits) < target + 2_000_000,
                            "{now} {target}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_target_that_has_come_is_asked_for_as_it_is() {
        let begin = Instant::now();
        let now = begin + Duration::from_micros(1_300);
        for target in [begin, now] {
            assert_eq!(Milliseconds(begin).ask_for(target, now), target);
        }
    }

    #[test]
    fn the_boundary_is_found_however_long_ago_it_was() {
        let begin = Instant::now();
        for nanos in [0, 1, 999_999, 5_000_000, 86_400_000_000_007] {
            let now = begin + Duration::from_nanos(nanos);
            assert_eq!(boundary(now, |at| at <= begin), Some(begin), "{nanos}");
        }
    }

    #[test]
    fn a_boundary_that_moves_during_the_search_is_not_found() {
        let begin = Instant::now();
        let now = begin + Duration::from_millis(5);
        let asked = Cell::new(0);
        let moving = |at: Instant| {
            asked.set(asked.get() + 1);
            at <= if asked.get() < 10 { begin } else { now }
        };
        assert_eq!(boundary(now, moving), None);
    }

    // Each search finds a boundary of its own, a whole number of milliseconds from the others.
    #[test]
    fn where_tokios_milliseconds_begin_is_found_on_a_running_clock() {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build()
            .unwrap();
        let clock = Clock::new(
            runtime.handle().clone(),
            None,
            Some(Resolution::MILLISECOND),
        );
        runtime.block_on(async {
            let find = || Some(Milliseconds::find(&clock)?.0);
            let mut first = None;
            for _ in 0..100 {
                tokio::time::sleep(MILLISECOND).await;
                let Some(found) = find() else { continue };
                let first = *first.get_or_insert(found);
                let apart = found.duration_since(first) + first.duration_since(found);
                assert_eq!(apart.as_nanos() % MILLISECOND.as_nanos(), 0);
            }
            // On a busy machine it may move during all four tries, but not each time.
            assert!(first.is_some());
            // It is tokio's own rounding that is found: the boundary is processed, and what follows it is not.
            let mut is_processed = host::is_processed_by_tokio(Instant::now());
            let found = (0..1_000).find_map(|_| {
                let at = find()?;
                (is_processed(at) && !is_processed(at + Duration::from_nanos(1))).then_some(at)
            });
            assert!(found.is_some());
        });
    }
}
