//! The delays of `tower::retry`.

use std::future::ready;
use std::time::Duration;

use tower::retry::backoff::{Backoff, ExponentialBackoffMaker as Towers, MakeBackoff};
use tower::retry::{Policy, RetryLayer};
use tower::util::rng::{HasherRng, Rng};
use tower::{Layer, Service, service_fn};
use waterwheel::tower::backoff::{ExponentialBackoff, ExponentialBackoffMaker};
use waterwheel::{Instant, Sleep, Timer};

use crate::bodies::Broken;
use crate::support::{Dice, current_thread, ms, on_manual_clock, poll_once, waiting};

/// A generator that always returns this number.
#[derive(Debug, Clone, Copy)]
struct Always(f64);

impl Rng for Always {
    fn next_u64(&mut self) -> u64 {
        0
    }

    fn next_f64(&mut self) -> f64 {
        self.0
    }
}

/// Random numbers from a seed.
#[derive(Debug, Clone)]
struct Seeded(u64);

impl Rng for Seeded {
    fn next_u64(&mut self) -> u64 {
        let mut dice = Dice(self.0);
        let next = dice.next();
        self.0 = dice.0;
        next
    }
}

/// The consecutive delays of such a backoff.
async fn delays<R: Rng>(mut backoff: ExponentialBackoff<R>, count: usize) -> Vec<Duration> {
    let mut delays = Vec::new();
    for _ in 0..count {
        let start = Instant::now();
        delays.push(backoff.next_backoff().deadline() - start);
    }
    delays
}

#[tokio::test(start_paused = true)]
async fn each_delay_is_twice_the_last_up_to_the_most() {
    let mut maker = ExponentialBackoffMaker::new(ms(10), ms(75), 0.0, Always(0.9)).unwrap();
    let expected = [10, 20, 40, 75, 75, 75].map(ms);
    assert_eq!(delays(maker.make_backoff(), 6).await, expected);
    // Each request starts again.
    assert_eq!(delays(maker.make_backoff(), 6).await, expected);
    let far = delays(maker.make_backoff(), 100).await;
    assert_eq!(far[99], ms(75));
}

#[tokio::test(start_paused = true)]
async fn the_jitter_adds_a_part_of_the_delay() {
    for (jitter, random, expected) in [
        (0.5, 0.0, [10, 20, 40, 75]),
        (0.5, 0.5, [12, 25, 50, 75]),
        (1.0, 1.0, [20, 40, 75, 75]),
        (100.0, 1.0, [75, 75, 75, 75]),
    ] {
        let maker = ExponentialBackoffMaker::new(ms(10), ms(75), jitter, Always(random));
        let delays = delays(maker.unwrap().make_backoff(), 4).await;
        let whole = |delay: Duration| ms(delay.as_millis() as u64);
        let whole: Vec<_> = delays.into_iter().map(whole).collect();
        assert_eq!(whole, expected.map(ms), "{jitter} {random}");
    }
}

#[tokio::test(start_paused = true)]
async fn delays_are_those_of_towers_backoff() {
    for seed in 0..50 {
        let (ours, theirs) = (Seeded(seed), Seeded(seed));
        let jitter = f64::from(seed as u32) / 10.0;
        let mut ours = ExponentialBackoffMaker::new(ms(50), ms(90_000), jitter, ours).unwrap();
        let mut theirs = Towers::new(ms(50), ms(90_000), jitter, theirs).unwrap();
        let ours = delays(ours.make_backoff(), 16).await;
        let mut theirs = theirs.make_backoff();
        for our in ours {
            let start = Instant::now();
            let their = theirs.next_backoff().deadline() - start;
            // tower rounds the seconds and the nanoseconds of the jitter separately, and loses up to a second if there are whole seconds.
            let tolerance = match our.max(their) < ms(1_000) {
                true => Duration::from_micros(1),
                false => ms(1_000),
            };
            assert!(
                our.abs_diff(their) <= tolerance,
                "{our:?}, tower {their:?}, {seed}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_argument_makes_a_backoff_panic() {
    let huge = [ms(0), ms(1), Duration::MAX / 3, Duration::MAX];
    for min in huge {
        for max in huge {
            for jitter in [0.0, 0.99, 100.0] {
                let Ok(mut maker) = ExponentialBackoffMaker::new(min, max, jitter, Always(1.0))
                else {
                    assert!(min > max || max.is_zero());
                    continue;
                };
                let delays = delays(maker.make_backoff(), 70).await;
                assert!(delays[69] <= max);
                assert_eq!(delays[69].is_zero(), min.is_zero());
            }
        }
    }
    let mut backoff = ExponentialBackoffMaker::default().make_backoff();
    let first = backoff.next_backoff().deadline() - Instant::now();
    assert!((ms(50)..ms(100)).contains(&first), "{first:?}");
}

#[test]
fn bad_arguments_make_no_backoff() {
    let error = |min, max, jitter| {
        ExponentialBackoffMaker::new(min, max, jitter, HasherRng::default()).unwrap_err()
    };
    assert!(error(ms(2), ms(1), 0.5).is_range());
    assert!(error(ms(0), ms(0), 0.5).is_range());
    for jitter in [-0.1, 100.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = error(ms(1), ms(2), jitter);
        assert!(error.is_jitter() && !error.is_range());
        assert!(error.to_string().contains("jitter"));
    }
}

#[tokio::test(start_paused = true)]
async fn two_requests_do_not_wait_alike() {
    let (least, most) = (ms(1_000_000), ms(100_000_000));
    let mut maker = ExponentialBackoffMaker::new(least, most, 1.0, HasherRng::default()).unwrap();
    let one = maker.make_backoff();
    // `Retry` does this to a policy for each request: to one that has a backoff, or a maker.
    let (two, three) = (one.clone(), maker.clone().make_backoff());
    let (one, two, three) = (
        delays(one, 5).await,
        delays(two, 5).await,
        delays(three, 5).await,
    );
    assert!(
        one != two && two != three && three != one,
        "{one:?} {two:?} {three:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_clone_of_a_backoff_begins_anew() {
    let mut maker = ExponentialBackoffMaker::new(ms(10), ms(75), 0.0, Always(0.0)).unwrap();
    let mut backoff = maker.make_backoff();
    drop((backoff.next_backoff(), backoff.next_backoff()));
    assert_eq!(delays(backoff.clone(), 2).await, [ms(10), ms(20)]);
    assert_eq!(delays(backoff, 1).await, [ms(40)]);
}

/// Retries forever, after a delay.
#[derive(Clone)]
struct Persistent<B>(B);

impl<B: Backoff<Future = Sleep>> Policy<(), u32, Broken> for Persistent<B> {
    type Future = Sleep;

    fn retry(&mut self, (): &mut (), result: &mut Result<u32, Broken>) -> Option<Sleep> {
        result.is_err().then(|| self.0.next_backoff())
    }

    fn clone_request(&mut self, (): &()) -> Option<()> {
        Some(())
    }
}

#[tokio::test(start_paused = true)]
async fn towers_retry_waits_by_our_sleeps() {
    let mut maker = ExponentialBackoffMaker::new(ms(10), ms(75), 0.0, Always(0.0)).unwrap();
    let calls = std::rc::Rc::new(std::cell::Cell::new(0));
    let failing = service_fn(move |()| {
        calls.set(calls.get() + 1);
        ready(if calls.get() < 4 {
            Err(Broken)
        } else {
            Ok(calls.get())
        })
    });
    let mut service = RetryLayer::new(Persistent(maker.make_backoff())).layer(failing);
    let start = Instant::now();
    assert_eq!(service.call(()).await, Ok(4));
    assert_eq!(start.elapsed(), ms(10 + 20 + 40));
    assert_eq!(Timer::current().metrics().fired(), 3);
}

#[test]
fn a_backoff_runs_by_the_clock_of_its_timer() {
    let runtime = current_thread();
    let (clock, timer) = on_manual_clock(&runtime);
    let maker = ExponentialBackoffMaker::new(ms(10), ms(75), 0.0, Always(0.0)).unwrap();
    let mut sleep = waiting(maker.on(&timer).make_backoff().next_backoff());
    clock.advance(ms(10));
    assert!(poll_once(&mut sleep).is_ready());
}
