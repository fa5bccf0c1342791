//! The adapter for hyper, through hyper's traits alone. hyper itself runs on it in `testing/waterwheel-peers`.

#[path = "../support/mod.rs"]
mod support;

mod stopped;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{self, Timer as _};
use waterwheel::{ManualClock, Sleep, Timer};

use support::{Probe, current_thread, end_of_time, ms, on_manual_clock};

type Boxed = Pin<Box<dyn rt::Sleep>>;

/// Calls `act` with a timer on a manual clock.
fn by_hand(act: impl FnOnce(&ManualClock, &Timer)) {
    let runtime = current_thread();
    let (clock, timer) = on_manual_clock(&runtime);
    act(&clock, &timer);
}

#[test]
fn a_sleep_of_hypers_fires_at_its_deadline() {
    by_hand(|clock, timer| {
        let probe = Probe::new();
        let mut sleeps: [Boxed; 2] = [
            rt::Timer::sleep(timer, ms(10)),
            rt::Timer::sleep_until(timer, clock.now().into_std() + ms(10)),
        ];
        assert!(
            sleeps
                .iter_mut()
                .all(|sleep| probe.poll(sleep).is_pending())
        );
        clock.advance(ms(9));
        assert_eq!(probe.wakes(), 0);
        clock.advance(ms(1));
        assert_eq!(probe.wakes(), 2);
        assert!(sleeps.iter_mut().all(|sleep| probe.poll(sleep).is_ready()));
    });
}

#[test]
fn hyper_asks_the_timer_for_the_time() {
    by_hand(|clock, timer| {
        clock.advance(ms(86_400_000));
        let now: Instant = rt::Timer::now(timer);
        assert_eq!(now, clock.now().into_std());
        assert!(now > Instant::now());
    });
}

#[test]
fn the_longest_durations_wait_and_can_be_reset() {
    by_hand(|clock, timer| {
        let probe = Probe::new();
        let mut sleep = probe.waiting(rt::Timer::sleep(timer, Duration::MAX));
        // The sleep can be shortened and extended again.
        let now = clock.now().into_std();
        timer.reset(&mut sleep, now + ms(5));
        timer.reset(&mut sleep, end_of_time().into_std());
        let _until = probe.waiting(rt::Timer::sleep_until(timer, end_of_time().into_std()));
        clock.advance(ms(86_400_000 * 365 * 25));
        assert_eq!(probe.wakes(), 0);
        assert!(probe.poll(&mut sleep).is_pending());
    });
}

#[test]
fn a_reset_moves_our_sleep_in_place() {
    by_hand(|clock, timer| {
        let probe = Probe::new();
        let mut sleep = rt::Timer::sleep(timer, ms(10));
        let address = |sleep: &Boxed| std::ptr::from_ref(&**sleep).cast::<u8>();
        let before = address(&sleep);
        assert!(probe.poll(&mut sleep).is_pending());
        timer.reset(&mut sleep, clock.now().into_std() + ms(30));
        assert_eq!(address(&sleep), before);
        clock.advance(ms(29));
        assert_eq!((probe.wakes(), timer.metrics().armed()), (0, 1));
        clock.advance(ms(1));
        assert_eq!(probe.wakes(), 1);
        // Likewise after it was ready.
        assert!(probe.poll(&mut sleep).is_ready());
        timer.reset(&mut sleep, clock.now().into_std() + ms(5));
        assert!(probe.poll(&mut sleep).is_pending());
        clock.advance(ms(5));
        assert_eq!(probe.wakes(), 2);
    });
}

/// A sleep from another crate, which is never ready.
struct Foreign;

impl Future for Foreign {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl rt::Sleep for Foreign {}

#[test]
fn a_reset_of_another_kind_of_sleep_replaces_it() {
    by_hand(|clock, timer| {
        let mut sleep: Boxed = Box::pin(Foreign);
        timer.reset(&mut sleep, clock.now().into_std() + ms(5));
        let probe = Probe::new();
        assert!(probe.poll(&mut sleep).is_pending());
        clock.advance(ms(5));
        assert_eq!(probe.wakes(), 1);
        assert!(probe.poll(&mut sleep).is_ready());
    });
}

#[test]
fn a_reset_moves_a_boxed_sleep_of_the_timer_in_place() {
    by_hand(|clock, timer| {
        let mut sleep: Boxed = Box::pin(timer.sleep(ms(10)));
        let deadline = clock.now() + ms(30);
        timer.reset(&mut sleep, deadline.into_std());
        let ours = sleep.as_mut().downcast_mut_pin::<Sleep>();
        assert_eq!(ours.map(|it| it.deadline()), Some(deadline));
        let probe = Probe::new();
        assert!(probe.poll(&mut sleep).is_pending());
        clock.advance(ms(30));
        assert_eq!(probe.wakes(), 1);
    });
}

// Otherwise it would wait for the other timer's clock.
#[test]
fn a_reset_of_another_timers_sleep_replaces_it() {
    by_hand(|_, other| {
        by_hand(|clock, timer| {
            let by_hyper = rt::Timer::sleep(other, ms(10));
            let by_hand: Boxed = Box::pin(other.sleep(ms(10)));
            for mut sleep in [by_hyper, by_hand] {
                let probe = Probe::new();
                assert!(probe.poll(&mut sleep).is_pending());
                assert_eq!(other.metrics().pending(), 1);
                timer.reset(&mut sleep, clock.now().into_std() + ms(5));
                assert_eq!(other.metrics().pending(), 0);
                assert!(probe.poll(&mut sleep).is_pending());
                clock.advance(ms(5));
                assert_eq!(probe.wakes(), 1);
                assert!(probe.poll(&mut sleep).is_ready());
            }
        });
    });
}
