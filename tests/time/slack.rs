//! Slack: a deadline that moves up to where others fire.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use waterwheel::{Duration, Instant, ManualClock, Sleep, Timer, sleep};

use crate::support::{
    Dice, Probe, assert_panics_here, inside, ms, multi_thread, on_manual_clock, own_timer,
    poll_once, us,
};

#[tokio::test(start_paused = true)]
async fn a_sleep_with_slack_fires_between_its_two_bounds() {
    let timer = own_timer();
    let mut dice = Dice(3);
    for _ in 0..200 {
        let (min, slack) = (us(dice.roll(3_000_000)), us(dice.roll(3_000_000)));
        let begun = timer.now();
        let sleep = timer.sleep_within(min, min + slack);
        assert!(sleep.deadline() >= begun + min && sleep.deadline() <= begun + min + slack);
        let deadline = sleep.deadline();
        sleep.await;
        // The tick of the deadline; this clock moves by whole milliseconds.
        assert!(timer.now() >= deadline && timer.now() < deadline + ms(2));
    }
}

#[test]
fn timers_of_about_one_time_share_a_deadline() {
    let runtime = multi_thread(2);
    let _entered = runtime.enter();
    // Several timers share one grid.
    let timers = [Timer::current(), Timer::builder().start().unwrap()];
    let deadlines = |slack: Duration| -> BTreeSet<Instant> {
        let sleeps = (0..1_000).map(|number| {
            let timer = &timers[number % 2];
            timer.sleep_within(ms(60_000), ms(60_000) + slack)
        });
        sleeps.map(|sleep| sleep.deadline()).collect()
    };
    let exact = deadlines(Duration::ZERO);
    assert!(exact.len() > 100, "{}", exact.len());
    let shared = deadlines(ms(15_000));
    // A grid line may be passed meanwhile.
    assert!(shared.len() <= 2, "{}", shared.len());
}

// A simulation has the same outcome each time.
#[test]
fn on_a_manual_clock_the_grid_begins_with_the_clock() {
    let runtime = multi_thread(1);
    let clock = ManualClock::new();
    let begin = clock.now();
    clock.advance(us(123_456));
    for _ in 0..2 {
        let builder = Timer::builder().clock(clock.clone());
        let timer = builder.start_on(runtime.handle()).unwrap();
        let sleep = timer.sleep_within(ms(500), ms(1_500));
        assert_eq!(sleep.deadline(), begin + ms(1_000));
    }
}

#[test]
fn a_sleep_that_is_given_slack_moves_once() {
    let runtime = multi_thread(1);
    inside(&runtime, || {
        let before = sleep(ms(30_000));
        let exact = before.deadline();
        let mut sleep = before.with_slack(ms(1_000));
        let aligned = sleep.deadline();
        assert!(aligned >= exact && aligned < exact + ms(1_000));
        assert_eq!(sleep.deadline(), aligned);
        // Already on the grid: the same slack moves it no further, but a coarser one does.
        sleep = sleep.with_slack(ms(1_000));
        assert_eq!(sleep.deadline(), aligned);
        sleep.set_deadline(exact);
        assert_eq!(sleep.deadline(), exact);
    });
}

// A long delay's first poll trusts the time at which the sleep was made, and must not mistake the slack for elapsed time.
#[test]
fn slack_before_the_first_poll_makes_no_sleep_early() {
    let runtime = multi_thread(1);
    let task = runtime.spawn(async {
        let mut long = sleep(ms(1_000)).with_slack(ms(60_000));
        assert!(first_poll(&mut long).await.is_pending());
        // If the slack had moved the hand, it would have passed this one.
        let mut short = sleep(ms(20_000));
        assert!(first_poll(&mut short).await.is_pending());
    });
    runtime.block_on(task).unwrap();
}

async fn first_poll(sleep: &mut Sleep) -> Poll<()> {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *sleep).poll(context))).await
}

#[test]
fn slack_postpones_an_armed_sleep_and_no_fired_one() {
    let runtime = multi_thread(1);
    let (clock, timer) = on_manual_clock(&runtime);
    let probe = Probe::new();
    let mut sleep = probe.waiting(timer.sleep(ms(1_001)));
    sleep = sleep.with_slack(ms(60_000));
    let deadline = sleep.deadline();
    clock.advance(deadline - clock.now() - ms(1));
    assert_eq!(probe.wakes(), 0);
    clock.advance(ms(2));
    assert_eq!(probe.wakes(), 1);
    assert!(probe.poll(&mut sleep).is_ready());
    sleep = sleep.with_slack(ms(60_000));
    assert_eq!(sleep.deadline(), deadline);
    assert!(poll_once(&mut sleep).is_ready());
}

#[test]
fn any_bounds_are_taken_or_refused_with_advice() {
    let runtime = multi_thread(1);
    inside(&runtime, || {
        let timer = own_timer();
        let error = timer.try_sleep_within(ms(2), ms(1)).unwrap_err();
        assert!(error.is_invalid(), "{error}");
        assert!(error.to_string().contains("swap"), "{error}");
        assert_panics_here(&["`min` must not be greater than `max`"], || {
            timer.sleep_within(ms(2), ms(1))
        });
        for (min, max) in [
            (Duration::ZERO, Duration::MAX),
            (Duration::MAX, Duration::MAX),
            (Duration::MAX - ms(1), Duration::MAX),
            (ms(1), ms(1)),
        ] {
            let sleep = timer.sleep_within(min, max);
            assert!(sleep.deadline() >= timer.now() - ms(10_000), "{min:?}");
        }
        let far = sleep(Duration::MAX).with_slack(Duration::MAX);
        assert!(far.deadline() > timer.now() + ms(1_000));
        timer.shutdown();
        assert!(
            timer
                .try_sleep_within(ms(1), ms(2))
                .unwrap_err()
                .is_shutdown()
        );
    });
}

#[test]
fn a_permit_is_taken_once_and_given_back() {
    let runtime = multi_thread(1);
    inside(&runtime, || {
        let timer = crate::support::bounded_timer(1);
        let sleep = timer.sleep_within(ms(10), ms(20)).with_slack(ms(500));
        assert!(
            timer
                .try_sleep_within(ms(10), ms(20))
                .unwrap_err()
                .is_at_capacity()
        );
        drop(sleep);
        drop(timer.try_sleep_within(ms(10), ms(20)).unwrap());
        // A refused range takes no place.
        assert!(timer.try_sleep_within(ms(2), ms(1)).is_err());
        drop(timer.try_sleep(ms(10)).unwrap());
    });
}
