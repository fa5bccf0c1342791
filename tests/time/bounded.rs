//! `max_pending` counts futures that were made, and are neither done nor dropped.

use std::future::{pending, ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{hint, thread};

use futures::StreamExt;
use waterwheel::{Duration, Instant, Sleep, Timer};

use crate::support::{
    HOUR, Probe, assert_panics_here, assert_settled, bounded_timer, inside, ms, multi_thread,
    panic_of, poll_once, refusals, us, waiting_with, waker_on_drop, within,
};

/// The number of additional futures that the timer accepts now.
fn free(timer: &Timer) -> usize {
    let mut taken = Vec::new();
    while let Ok(sleep) = timer.try_sleep(HOUR) {
        taken.push(sleep);
    }
    taken.len()
}

#[tokio::test(start_paused = true)]
async fn the_one_beyond_the_bound_is_refused() {
    let timer = bounded_timer(100);
    assert_eq!(timer.max_pending(), Some(100));
    let probe = Probe::new();
    let mut all: Vec<Sleep> = (0..100).map(|_| timer.sleep(ms(10))).collect();
    // Unpolled ones count, and so do pending ones.
    assert_eq!(free(&timer), 0);
    all.truncate(98);
    assert_eq!(free(&timer), 2);
    assert!(all.iter_mut().all(|sleep| probe.poll(sleep).is_pending()));
    assert_eq!(free(&timer), 2);
    all.truncate(97);
    assert_eq!(free(&timer), 3);
    let _last = [(); 3].map(|()| timer.sleep(HOUR));
    // The timer is full, and fires the futures that it holds.
    tokio::time::sleep(ms(11)).await;
    assert_eq!(probe.wakes(), 97);
    assert!(all.iter_mut().all(|sleep| poll_once(sleep).is_ready()));
    assert_eq!(free(&timer), 97);
    assert_eq!(assert_settled(&timer).fired(), 97);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_a_typed_error_or_a_panic_with_advice() {
    let timer = bounded_timer(1);
    let later = Instant::now() + ms(1);
    let _first = timer.sleep(ms(10));
    for error in refusals(&timer) {
        assert!(error.is_at_capacity() && !error.is_shutdown() && !error.is_invalid());
        assert!(error.to_string().contains("max_pending"));
    }
    let says = &["max_pending", "with a higher `max_pending`"];
    assert_panics_here(says, || timer.sleep(ms(1)));
    assert_panics_here(says, || timer.sleep_until(later));
    assert_panics_here(says, || timer.timeout(ms(1), pending::<()>()));
    assert_panics_here(says, || timer.timeout_at(later, pending::<()>()));
    assert_panics_here(says, || timer.interval(ms(1)));
    assert_panics_here(says, || timer.interval_at(later, ms(1)));
}

#[tokio::test(start_paused = true)]
async fn a_sleep_that_is_done_and_then_dropped_frees_its_place_once() {
    let timer = bounded_timer(2);
    let mut sleep = timer.sleep(ms(10));
    (&mut sleep).await;
    assert_eq!(free(&timer), 2);
    assert!(poll_once(&mut sleep).is_ready());
    assert_eq!(free(&timer), 2);
    drop(sleep);
    assert_eq!(free(&timer), 2);
    let mut at_once = timer.sleep(Duration::ZERO);
    assert_eq!(free(&timer), 1);
    assert!(poll_once(&mut at_once).is_ready());
    assert_eq!(free(&timer), 2);
    assert_settled(&timer);
}

#[tokio::test(start_paused = true)]
async fn a_sleep_that_is_reset_keeps_its_place() {
    let timer = bounded_timer(1);
    let mut sleep = timer.sleep(ms(10));
    sleep.set_deadline(Instant::now() + ms(20));
    assert_eq!(free(&timer), 0);
    assert!(poll_once(&mut sleep).is_pending());
    for millis in [30, 5, 0] {
        sleep.set_deadline(Instant::now() + ms(millis));
        assert_eq!(free(&timer), 0);
    }
    assert!(poll_once(&mut sleep).is_ready());
    assert_eq!(free(&timer), 1);
    assert_settled(&timer);
}

#[tokio::test(start_paused = true)]
async fn a_sleep_that_was_done_and_is_reset_counts_again() {
    let timer = bounded_timer(1);
    let mut sleep = timer.sleep(ms(10));
    (&mut sleep).await;
    let other = timer.sleep(HOUR);
    // This is one too many, and the count includes it.
    sleep.set_deadline(Instant::now() + ms(10));
    drop(other);
    assert_eq!(free(&timer), 0);
    (&mut sleep).await;
    assert_eq!(free(&timer), 1);
    sleep.set_deadline(Instant::now() + ms(10));
    assert_eq!(free(&timer), 0);
    drop(sleep);
    assert_eq!(free(&timer), 1);
    assert_settled(&timer);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_takes_one_place_until_it_is_dropped_or_elapses() {
    let timer = bounded_timer(1);
    let limited = timer.timeout(ms(10), pending::<()>());
    assert_eq!(free(&timer), 0);
    drop(limited);
    assert_eq!(free(&timer), 1);
    let mut limited = Box::pin(timer.timeout(ms(10), pending::<()>()));
    assert!(limited.as_mut().await.is_err());
    assert_eq!(free(&timer), 1);
    drop(limited);
    assert_eq!(free(&timer), 1);
    // A future that is done but still exists, as in `join!` or in a struct.
    let mut limited = timer.timeout(ms(10), ready(1));
    assert!(poll_once(&mut limited).is_ready());
    assert_eq!(free(&timer), 1);
    drop(limited);
    assert_eq!(free(&timer), 1);
    let inner = timer.timeout(ms(10), ready(1)).into_inner();
    assert_eq!(free(&timer), 1);
    assert_eq!(inner.await, 1);
    assert_settled(&timer);
}

#[tokio::test(start_paused = true)]
async fn an_interval_takes_one_place_for_as_long_as_it_lives() {
    let timer = bounded_timer(1);
    let mut interval = timer.interval(ms(10));
    for _ in 0..3 {
        assert_eq!(free(&timer), 0);
        interval.tick().await;
    }
    interval.reset();
    interval.reset_immediately();
    interval.tick().await;
    assert_eq!(free(&timer), 0);
    drop(interval);
    assert_eq!(free(&timer), 1);
    assert_settled(&timer);
}

#[tokio::test(start_paused = true)]
async fn a_refused_argument_takes_no_place() {
    let timer = bounded_timer(1);
    let refused = timer.try_interval(Duration::ZERO);
    assert!(refused.is_err_and(|error| error.is_invalid()));
    let _ = panic_of(|| timer.interval(Duration::ZERO));
    assert_eq!(free(&timer), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_timer_gives_every_place_back_once() {
    let timer = bounded_timer(4);
    let mut sleep = timer.sleep(HOUR);
    let mut interval = timer.interval_at(Instant::now() + HOUR, HOUR);
    let mut limited = timer.timeout(HOUR, pending::<()>());
    assert!(poll_once(&mut sleep).is_pending());
    assert!(poll_once(&mut limited).is_pending());
    timer.shutdown();
    assert!(poll_once(&mut sleep).is_ready());
    assert!(poll_once(&mut limited).is_ready());
    assert_eq!(interval.next().await, None);
    // Over-releasing would show as an underflow here, which panics in debug builds.
    drop((sleep, interval, limited));
    let refused = timer.try_sleep(ms(1));
    assert!(refused.is_err_and(|error| error.is_shutdown()));
    assert_settled(&timer);
}

#[tokio::test(start_paused = true)]
async fn another_timer_is_not_bound_by_it() {
    let timer = bounded_timer(1);
    let _first = timer.sleep(ms(10));
    let sleeps: Vec<_> = (0..100).map(|_| waterwheel::sleep(ms(10))).collect();
    assert_eq!(sleeps.len(), 100);
    assert_eq!(Timer::current().max_pending(), None);
}

// netty#14959: a pending counter that drifts.
#[tokio::test(start_paused = true)]
async fn the_count_does_not_drift_when_a_waker_panics_as_it_is_let_go() {
    let timer = bounded_timer(1);
    let waker = || waker_on_drop(|| panic!("a waker that panics when dropped"));
    let sleep = waiting_with(timer.sleep(HOUR), waker());
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(sleep)));
    assert_eq!(free(&timer), 1, "dropped while pending");
    let mut sleep = waiting_with(timer.sleep(ms(5)), waker());
    // Wait past the deadline without a turn of the driver, so that the poll releases it.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        sleep.set_deadline(Instant::now() - ms(1));
        let _ = poll_once(&mut sleep);
        drop(sleep);
    }));
    drop(outcome);
    assert_eq!(free(&timer), 1, "reset to the past, polled and dropped");
    assert_settled(&timer);
}

/// Lets two threads meet again and again, to continue at the same moment. They spin: waking a thread
/// takes far longer than the operations that should collide.
struct Meeting {
    arrived: AtomicUsize,
    waits: AtomicUsize,
    /// The number of the meeting after which they stop.
    end: AtomicUsize,
}

/// The number of waits after which fewer meetings than requested are enough. A busy machine seldom runs
/// both threads at once: a number of meetings alone could take minutes.
const MOST_WAITS: usize = 2_000;

impl Meeting {
    fn new(most: usize) -> Meeting {
        Meeting {
            arrived: AtomicUsize::new(0),
            waits: AtomicUsize::new(0),
            end: AtomicUsize::new(most),
        }
    }

    /// Waits for the other thread. Returns `false` for both if it is enough.
    fn meet(&self) -> bool {
        let number = self.arrived.fetch_add(1, Ordering::SeqCst) / 2;
        let mut spins = 0;
        while self.arrived.load(Ordering::SeqCst) / 2 <= number {
            spins += 1;
            if spins == 1_000 && self.waits.fetch_add(1, Ordering::SeqCst) == MOST_WAITS {
                // Not at the next meeting: the other thread may be on its way to it.
                self.end.fetch_min(number + 2, Ordering::SeqCst);
            }
            if spins % 1_000 == 0 {
                thread::sleep(us(50));
                assert!(spins < 50_000_000, "the other one has gone");
            }
            hint::spin_loop();
        }
        number < self.end.load(Ordering::SeqCst)
    }
}

/// Calls both at once, on two threads; returns both results.
fn both<R: Send>(first: impl FnOnce() -> R, second: impl FnOnce() -> R + Send) -> (R, R) {
    thread::scope(|scope| {
        let second = scope.spawn(second);
        (first(), second.join().expect("it does not panic"))
    })
}

const ROUNDS: usize = 50_000;

// In every order, with fewer rounds: `a_bound_is_neither_exceeded_nor_eaten_up` and its sibling, of the models
// of `src/driver`.
#[test]
fn the_bound_is_exact_under_contention() {
    // A deadlock takes longer, a busy machine does not.
    within(Duration::from_secs(600), || {
        let runtime = multi_thread(1);
        inside(&runtime, || {
            two_want_the_last_place(&bounded_timer(1));
            one_gives_a_place_back_as_another_takes_one(&bounded_timer(2));
        });
    });
}

fn two_want_the_last_place(timer: &Timer) {
    let meeting = Meeting::new(ROUNDS * 2);
    let rival = || -> Vec<bool> {
        let mut had_it = Vec::new();
        while meeting.meet() {
            let sleep = timer.try_sleep(HOUR);
            meeting.meet();
            had_it.push(sleep.is_ok());
        }
        had_it
    };
    let (mine, theirs) = both(rival, rival);
    let wrong = mine.iter().zip(&theirs).filter(|(a, b)| a == b).count();
    let rounds = mine.len();
    assert_eq!(wrong, 0, "of {rounds} rounds both had it, or none");
    assert_eq!(rounds, theirs.len());
    assert_eq!(free(timer), 1);
    assert_settled(timer);
}

fn one_gives_a_place_back_as_another_takes_one(timer: &Timer) {
    let meeting = Meeting::new(ROUNDS);
    let rival = |mut held: Option<Sleep>| {
        while meeting.meet() {
            held = match held {
                None => timer.try_sleep(HOUR).ok(),
                Some(_given_back) => None,
            };
        }
    };
    let first = timer.sleep(HOUR);
    both(|| rival(Some(first)), || rival(None));
    assert_eq!(free(timer), 2, "what went wrong once stays");
    assert_settled(timer);
}
