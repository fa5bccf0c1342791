//! Centuries of virtual time in seconds of the machine's: every timer fires once, and at its tick.

use waterwheel::wheel::{Key, Resolution, Tick, Verdict, Wheel};
use waterwheel::{Duration, Instant, Timer, sleep_until};

use crate::support::{Dice, assert_settled, ms, own_timer, paused, within};

/// 365 days in milliseconds.
const YEAR: u64 = 365 * 86_400_000;
const CENTURIES: u64 = 3 * 100 * YEAR;

/// Returns the full number in a release build, and a fiftieth of it in a debug build, which is
/// about that much slower.
const fn scaled(full: usize) -> usize {
    if cfg!(debug_assertions) {
        full / 50
    } else {
        full
    }
}

/// Turns the wheel like a driver that is always in time, until nothing is pending or the time has
/// come; calls `fired` for each timer that was handed out.
fn run(wheel: &mut Wheel<usize>, until: u64, mut fired: impl FnMut(&mut Wheel<usize>, u64, usize)) {
    let mut due = Vec::new();
    while let Some(turn) = wheel.next_expiration().filter(|turn| turn.get() <= until) {
        let judge = |_, _, _: &mut usize| Verdict::Due;
        wheel.advance(turn, usize::MAX, judge, |deadline, id| {
            assert_eq!(deadline, turn, "timer {id} is not at its tick");
            due.push((deadline.get(), id));
        });
        for (deadline, id) in due.drain(..) {
            fired(wheel, deadline, id);
        }
    }
}

#[test]
fn a_million_timers_in_three_centuries_fire_once_at_their_tick() {
    let mut dice = Dice(1);
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let timers = scaled(1_000_000);
    let deadlines: Vec<u64> = (0..timers).map(|_| dice.any_magnitude(CENTURIES)).collect();
    for (id, &deadline) in deadlines.iter().enumerate() {
        wheel.insert(Tick::new(deadline), id);
    }
    let mut times_fired = vec![0_u8; timers];
    run(&mut wheel, CENTURIES, |_, now, id| {
        assert_eq!(now, deadlines[id], "timer {id}");
        times_fired[id] += 1;
    });
    assert!(times_fired.iter().all(|&times| times == 1));
    assert!(wheel.is_empty());
    let last = deadlines.iter().max().expect("there are some");
    assert_eq!(wheel.now(), Tick::new(*last));
    assert!(*last > CENTURIES / 2, "the clock has come far");
}

// Timers that are armed again as they fire, while others are cancelled and moved both ways: more
// than a million firings.
#[test]
fn three_centuries_of_use_lose_no_timer_and_fire_none_early() {
    struct Armed {
        key: Key,
        deadline: u64,
    }
    let mut dice = Dice(2);
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let most = 30 * YEAR;
    let arm = |wheel: &mut Wheel<usize>, dice: &mut Dice, id| {
        let deadline = wheel.now().get() + dice.any_magnitude(most);
        let key = wheel.insert(Tick::new(deadline), id);
        Armed { key, deadline }
    };
    let count = scaled(1_000);
    let mut timers: Vec<Armed> = (0..count)
        .map(|id| arm(&mut wheel, &mut dice, id))
        .collect();
    let mut fired = 0;
    run(&mut wheel, CENTURIES, |wheel, now, id| {
        fired += 1;
        assert_eq!(now, timers[id].deadline, "timer {id}");
        timers[id] = arm(wheel, &mut dice, id);
        let other = dice.roll(count as u64) as usize;
        // A timer that is due at this tick as well has already left the wheel.
        if !wheel.is_pending(timers[other].key) {
            return;
        }
        // Not more often, or none would live for years.
        match dice.roll(16) {
            0 => {
                assert_eq!(wheel.cancel(timers[other].key), Some(other));
                timers[other] = arm(wheel, &mut dice, other);
            }
            1 => {
                let deadline = now + dice.any_magnitude(most);
                assert!(wheel.reset(timers[other].key, Tick::new(deadline)));
                timers[other].deadline = deadline;
            }
            _ => {}
        }
    });
    assert_eq!(wheel.len(), count);
    assert!(timers.iter().all(|timer| timer.deadline > CENTURIES));
    assert!(fired > scaled(750_000), "{fired} is not much of a use");
}

// With tokio's paused clock, the driver, tasks and wakers: half of the timers are the runtime's.
#[test]
fn tasks_that_sleep_for_three_centuries_wake_at_each_deadline() {
    within(Duration::from_secs(300), || {
        let runtime = paused();
        runtime.block_on(sleep_through_three_centuries());
    });
}

async fn sleep_through_three_centuries() {
    let start = Instant::now();
    let end = start + ms(CENTURIES);
    let (own, current) = (own_timer(), Timer::current());
    let tasks: Vec<_> = (0..scaled(3_000) as u64)
        .map(|number| {
            let own = (number % 2 == 0).then(|| own.clone());
            tokio::spawn(async move {
                let mut dice = Dice(number);
                let mut sleeps = 0_u64;
                while Instant::now() < end {
                    let deadline = Instant::now() + ms(dice.any_magnitude(30 * YEAR));
                    match &own {
                        Some(own) => own.sleep_until(deadline).await,
                        None => sleep_until(deadline).await,
                    }
                    assert_eq!(Instant::now(), deadline);
                    sleeps += 1;
                }
                sleeps
            })
        })
        .collect();
    let mut sleeps = 0;
    for task in tasks {
        sleeps += task.await.expect("each sleep ends at its deadline");
    }
    let fired = assert_settled(&own).fired() + assert_settled(&current).fired();
    assert_eq!(fired, sleeps);
    assert!(start.elapsed() >= ms(CENTURIES));
}
