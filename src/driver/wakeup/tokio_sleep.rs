//! The driver's sleep on tokio's clock.
//!
//! Where this sleep alone wakes the driver, a future that lowers the target also sets the sleep, as it updates the watchdog
//! thread elsewhere. So a future that arms a timer does not wake the driver's task. The waker that the sleep wakes takes the
//! first turn within tokio's clock, and sets the sleep for the next turn (`turn`). On a paused clock each turn is
//! a jump of the clock, and the driver's task runs for none of them. `benches/LOG.md` has the figures.
//!
//! tokio's sleep is reset and polled with this file's lock held. What it wakes within that is the first turn, which sees
//! [`is_changing`](TokioSleep::is_changing) and wakes the driver's task. With tokio's unstable tracing, a subscriber is called
//! too; it must not arm timers there.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use tokio::task::coop;
use tokio::time::{Duration, Instant};

use crate::clock::Clock;
use crate::driver::host;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// As good as never. One needless wake-up in such a time costs nothing. Not longer: before 1.54, tokio's
/// wheel takes no timers beyond 2^36 ms of its clock, two years (tokio#8334), and a process should be that old before it has
/// one there.
pub(super) const FAR: Duration = Duration::from_secs(86_400 * 30);

pub(super) struct TokioSleep {
    state: Mutex<State>,
    is_changing: AtomicBool,
}

struct State {
    /// The sleep stays at one place on the heap, so that it need not be allocated again.
    sleep: Pin<Box<Option<host::TokioSleep>>>,
    /// The driver has ended, and the sleep is not made again.
    has_ended: bool,
}

/// The sleep while its lock is held.
pub(super) struct Setting<'a>(&'a mut State);

impl TokioSleep {
    pub(super) fn new() -> TokioSleep {
        TokioSleep {
            state: Mutex::new(State {
                sleep: Box::pin(None),
                has_ended: false,
            }),
            is_changing: AtomicBool::new(false),
        }
    }

    /// Calls `change` with the lock held. `change` reads the target: of two threads that set the sleep at once, the second to
    /// take the lock reads the lower target.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Setting<'_>) -> R) -> R {
        let mut state = self.state.lock();
        // Relaxed: what matters is what this thread reads within `change`, and it reads its own stores.
        self.is_changing.store(true, Ordering::Relaxed);
        // Also if tokio panics: with its alternative timers, a sleep that is reset while the runtime ends does.
        let _changing = Changing(&self.is_changing);
        change(&mut Setting(&mut state))
    }

    /// `true` on a thread that is within [`change`](TokioSleep::change). On another thread it may be either.
    pub(super) fn is_changing(&self) -> bool {
        self.is_changing.load(Ordering::Relaxed)
    }

    /// The driver's task ends.
    pub(super) fn end(&self) {
        self.change(|setting| {
            setting.0.has_ended = true;
            setting.0.sleep.set(None);
        });
    }
}

/// Clears the flag when it is dropped.
struct Changing<'a>(&'a AtomicBool);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Setting<'_> {
    /// Whether the sleep exists, so that it can be set from outside of the runtime.
    pub(super) fn is_made(&self) -> bool {
        self.0.sleep.is_some()
    }

    /// Sets the sleep to wake `waker` at an instant. Returns `false` if the instant has come already.
    ///
    /// Without a sleep yet, the caller is in the context of the clock's home runtime.
    pub(super) fn set(&mut self, at: Instant, waker: &Waker) -> bool {
        if self.0.has_ended {
            return true;
        }
        match self.0.sleep.as_mut().as_pin_mut() {
            Some(sleep) => sleep.reset(at),
            None => self.0.sleep.set(Some(host::sleep_until(at))),
        }
        let Some(sleep) = self.0.sleep.as_mut().as_pin_mut() else {
            unreachable!("it has just been set");
        };
        // The task in which this runs may have used up its budget.
        let sleep = pin!(coop::unconstrained(sleep));
        sleep.poll(&mut Context::from_waker(waker)).is_pending()
    }

    /// There is no target: the sleep wakes nothing. Returns `true`.
    pub(super) fn rest(&mut self, clock: &Clock, waker: &Waker) -> bool {
        let sleep = self.0.sleep.as_ref().as_pin_ref();
        if sleep.is_some_and(|sleep| sleep.is_elapsed()) {
            // tokio does not know of it any more, and it can be set again.
            return true;
        }
        if clock.may_jump() {
            // The clock must not jump to an old target.
            self.0.sleep.set(None);
            return true;
        }
        // It stays, so that a future can set it from outside of the runtime.
        self.set(clock.now() + FAR, waker)
    }
}

// For which instant tokio is to be asked.
//
// tokio counts whole milliseconds since its runtime was built. It rounds a deadline *up* to one of them, and now *down*, and then
// waits for the difference. So it wakes up to two milliseconds after the deadline. But what it waits for is a whole number of
// milliseconds from the moment at which the worker begins to wait. The best is the least such number that reaches the target, and
// tokio takes it if it is asked for the right one of its milliseconds. Which that is depends on when the worker begins to wait. It
// is taken to do so at once. If it has tasks to run first, the wake may come a millisecond later, or too early, and then again.
// (The decisions 0004 and 0005 have the figures.)
//
// Where these milliseconds begin, tokio does not say. But a sleep of tokio's that is polled is ready if and only if its
// millisecond is not after the last one that tokio has processed. A search for the latest instant that is ready finds the
// boundary. It fails if another worker turns tokio's clock meanwhile; then the driver looks again when it runs next.
//
// A wrong answer costs some lateness, or a turn in which nothing is due, and no more than that.

const MILLISECOND: Duration = Duration::from_millis(1);

/// The number of attempts to find the boundary. It moves while another worker turns tokio's clock.
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
    use std::sync::Arc;

    use tokio::time::{Duration, Instant, advance};

    use super::TokioSleep;
    use crate::tests::{Wakes, paused};

    // A paused clock would jump to it, and it would keep the driver's memory until then.
    #[test]
    fn after_its_end_no_sleep_is_left_and_none_is_made() {
        let runtime = paused();
        runtime.block_on(async {
            let (sleep, (wakes, waker)) = (TokioSleep::new(), Wakes::new());
            let second = Duration::from_secs(1);
            let set = || sleep.change(|setting| setting.set(Instant::now() + second, &waker));
            for round in 1..=2 {
                assert!(set());
                advance(second).await;
                assert_eq!(wakes.count(), round);
            }
            assert!(set());
            sleep.end();
            // A future that lowers the target meets the end of its driver.
            assert!(set());
            assert!(!sleep.change(|setting| setting.is_made()));
            assert_eq!(Arc::strong_count(&wakes), 2, "the waker is held");
            advance(2 * second).await;
            assert_eq!(wakes.count(), 2);
        });
    }
}

#[cfg(test)]
mod milliseconds_tests {
    use std::cell::Cell;

    use tokio::time::{Duration, Instant};

    use super::{MILLISECOND, Milliseconds, boundary};

    use crate::driver::host;
    use crate::tests::{clock_of, one_worker};

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
        let runtime = one_worker();
        let clock = clock_of(&runtime);
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
            // Finds tokio's own rounding: the boundary is processed, and later instants are not.
            let mut is_processed = host::is_processed_by_tokio(Instant::now());
            let found = (0..1_000).find_map(|_| {
                let at = find()?;
                (is_processed(at) && !is_processed(at + Duration::from_nanos(1))).then_some(at)
            });
            assert!(found.is_some());
        });
    }
}
