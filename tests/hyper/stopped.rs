//! hyper has no way to be refused a sleep: the sleeps that it gets from a timer that is stopped, drains, or has reached its bound.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use hyper::rt::{self, Timer as _};
use waterwheel::{ManualClock, Timer};

use crate::support::{
    HOUR, Probe, assert_over, assert_settled, current_thread, in_an_ending_runtime, inside, ms,
    poll_once, waiting,
};
use crate::{Boxed, by_hand};

/// A sleep from each call that makes one.
fn made_by(timer: &Timer) -> [Boxed; 2] {
    let deadline = timer.now().into_std() + ms(5);
    [
        rt::Timer::sleep(timer, ms(5)),
        rt::Timer::sleep_until(timer, deadline),
    ]
}

/// Checks that none is ready and none wakes its task, even after a reset or past its deadline.
fn assert_wait(clock: &ManualClock, timer: &Timer, sleeps: &mut [Boxed]) {
    let probe = Probe::new();
    for sleep in sleeps {
        assert!(probe.poll(sleep).is_pending());
        clock.advance(ms(10));
        assert!(probe.poll(sleep).is_pending());
        timer.reset(sleep, clock.now().into_std() + ms(5));
        assert!(probe.poll(sleep).is_pending());
        clock.advance(ms(10));
        assert!(probe.poll(sleep).is_pending());
    }
    assert_eq!((probe.wakes(), probe.held()), (0, 0));
}

#[test]
fn sleeps_of_a_timer_that_was_shut_down_wait() {
    by_hand(|clock, timer| {
        let mut new = rt::Timer::sleep(timer, ms(5));
        let mut armed = rt::Timer::sleep(timer, HOUR);
        let probe = Probe::new();
        assert!(probe.poll(&mut armed).is_pending());
        assert_eq!(timer.shutdown(), 1);
        // The stop wakes it, like any sleep; then it waits.
        assert!(probe.poll(&mut armed).is_pending());
        assert_eq!((probe.wakes(), probe.held()), (1, 0));
        assert!(poll_once(&mut new).is_pending());
        assert_wait(clock, timer, &mut [new, armed]);
        assert_wait(clock, timer, &mut made_by(timer));
        assert_settled(timer);
    });
}

#[test]
fn a_sleep_that_was_due_before_the_stop_is_ready() {
    by_hand(|clock, timer| {
        let mut sleep = waiting(rt::Timer::sleep(timer, ms(5)));
        clock.advance(ms(5));
        timer.shutdown();
        assert!(poll_once(&mut sleep).is_ready());
    });
}

#[test]
fn a_drain_lets_sleeps_fire_and_new_ones_wait() {
    by_hand(|clock, timer| {
        let mut before = waiting(rt::Timer::sleep(timer, ms(5)));
        let mut drain = waiting(Box::pin(timer.drain()));
        let mut new = made_by(timer);
        assert!(new.iter_mut().all(|sleep| poll_once(sleep).is_pending()));
        clock.advance(ms(5));
        assert!(poll_once(&mut before).is_ready());
        // The drain does not wait for the new ones.
        assert!(poll_once(&mut drain).is_ready());
        assert_wait(clock, timer, &mut new);
        timer.reset(&mut before, clock.now().into_std() + ms(5));
        assert_wait(clock, timer, &mut [before]);
    });
}

/// A connection that asks for a sleep when it is dropped.
struct Connection(Arc<Mutex<Option<Boxed>>>);

impl Drop for Connection {
    fn drop(&mut self) {
        let sleep = rt::Timer::sleep(&Timer::current(), ms(5));
        *self.0.lock().unwrap() = Some(sleep);
    }
}

/// Creating and resetting a sleep of a runtime that has ended never panics; polling it elsewhere does, as with tokio's own.
#[test]
fn a_connection_may_ask_while_its_runtime_is_dropped() {
    let runtime = current_thread();
    let timer = inside(&runtime, Timer::current);
    let asked = Arc::new(Mutex::new(None));
    let connection = Connection(Arc::clone(&asked));
    runtime.spawn(async move {
        std::future::pending::<()>().await;
        drop(connection);
    });
    drop(runtime);
    let mut sleeps = Vec::from(made_by(&timer));
    sleeps.push(asked.lock().unwrap().take().expect("it has asked"));
    for sleep in &mut sleeps {
        assert_over(|| poll_once(&mut *sleep));
        timer.reset(sleep, timer.now().into_std());
        assert_over(|| poll_once(&mut *sleep));
    }
}

#[test]
fn a_task_of_an_ending_runtime_finds_its_limits_pending() {
    in_an_ending_runtime(|| {
        let timer = Timer::current();
        let mut sleep = waiting(rt::Timer::sleep(&timer, HOUR));
        timer.reset(&mut sleep, (timer.now() + 2 * HOUR).into_std());
        assert!(poll_once(&mut sleep).is_pending());
    });
}

// hyper-util's pool does this: it must not spin.
#[test]
fn a_loop_that_resets_ends_with_the_timer() {
    by_hand(|clock, timer| {
        let mut rounds = 0;
        let mut sweeps = Box::pin(async {
            let mut sleep = rt::Timer::sleep(timer, ms(5));
            loop {
                Pin::new(&mut sleep).await;
                rounds += 1;
                timer.reset(&mut sleep, timer.now().into_std() + ms(5));
            }
        });
        let probe = Probe::new();
        let mut poll = || {
            let poll: std::task::Poll<()> = probe.poll(&mut sweeps);
            assert!(poll.is_pending());
        };
        poll();
        clock.advance(ms(5));
        poll();
        timer.shutdown();
        let wakes = probe.wakes();
        for _ in 0..10 {
            poll();
            clock.advance(ms(5));
        }
        assert_eq!(probe.wakes(), wakes);
        drop(sweeps);
        assert_eq!(rounds, 1);
    });
}

#[test]
fn a_bound_that_is_reached_counts_hypers_sleeps_and_takes_them() {
    let runtime = current_thread();
    let clock = ManualClock::new();
    let builder = Timer::builder().clock(clock.clone()).max_pending(1);
    let timer = builder.start_on(runtime.handle()).unwrap();
    let probe = Probe::new();
    let mut sleeps = Vec::from(made_by(&timer));
    sleeps.extend(made_by(&timer));
    assert!(sleeps.iter_mut().all(|it| probe.poll(it).is_pending()));
    let refused = || timer.try_sleep(ms(1)).err();
    assert!(refused().is_some_and(|error| error.is_at_capacity()));
    clock.advance(ms(5));
    assert_eq!(probe.wakes(), 4);
    // Three of the four exceed the bound.
    for mut sleep in sleeps {
        assert!(refused().is_some());
        assert!(probe.poll(&mut sleep).is_ready());
    }
    assert!(refused().is_none());
    assert_settled(&timer);
}
