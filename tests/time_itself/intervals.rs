//! Two days of ticks, without drift, under tokio's paused clock.

use tokio::task::JoinSet;
use waterwheel::{Duration, Instant, Interval, MissedTickBehavior, Timer, interval};

use crate::support::{assert_settled, ms, us};
use crate::{DAY, timer_of};

const LENGTH: Duration = Duration::from_secs(2 * 86_400);

/// None is a whole number of ticks. A debug build leaves out the slowest ones.
const PERIODS: &[Duration] = &[
    Duration::from_nanos(3_599_999_999_999),
    Duration::from_nanos(61_803_398_875),
    #[cfg(not(debug_assertions))]
    Duration::from_nanos(7_000_000_001),
    #[cfg(not(debug_assertions))]
    Duration::from_nanos(333_333_333),
];

const BEHAVIORS: [MissedTickBehavior; 3] = [
    MissedTickBehavior::Burst,
    MissedTickBehavior::Delay,
    MissedTickBehavior::Skip,
];

/// A tick later than this was missed.
const LATE: Duration = Duration::from_millis(5);

/// The rule of the behaviour's documentation, step by step.
fn after(tick: Instant, taken: Instant, period: Duration, behavior: MissedTickBehavior) -> Instant {
    let mut next = tick + period;
    if taken - tick <= LATE {
        return next;
    }
    match behavior {
        MissedTickBehavior::Burst => next,
        MissedTickBehavior::Delay => taken + period,
        MissedTickBehavior::Skip => {
            while next <= taken {
                next += period;
            }
            next
        }
    }
}

/// Takes ticks for two days, each as it comes, and returns their number.
async fn in_time(mut interval: Interval, start: Instant) -> u32 {
    let period = interval.period();
    for count in 0.. {
        let tick = interval.tick().await;
        assert_eq!(tick, start + period * count, "tick {count} of {period:?}");
        let late = start.elapsed() - period * count;
        assert!(late <= ms(1), "tick {count} of {period:?}: {late:?} late");
        if tick + period > start + LENGTH {
            assert_eq!(interval.missed_ticks(), 0);
            return count + 1;
        }
    }
    unreachable!("two days end")
}

/// Takes ticks as well, but pauses for two and a half periods after every twentieth.
async fn held_up(mut interval: Interval, start: Instant) {
    let (period, behavior) = (interval.period(), interval.missed_tick_behavior());
    let mut expected = start;
    for count in 0_u32.. {
        let tick = interval.tick().await;
        let taken = Instant::now();
        assert_eq!(tick, expected, "{behavior:?}, tick {count} of {period:?}");
        assert!(taken >= tick);
        if taken > start + LENGTH {
            return;
        }
        expected = after(tick, taken, period, behavior);
        if count % 20 == 19 {
            tokio::time::sleep(period * 5 / 2).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ticks_of_two_days_do_not_drift() {
    let start = Instant::now();
    let timers = [timer_of(ms(1)), timer_of(us(100))];
    let mut waits = JoinSet::new();
    for &period in PERIODS {
        for behavior in BEHAVIORS {
            let own = timers.iter().map(|timer| timer.interval(period));
            for mut interval in own.chain([interval(period)]) {
                interval.set_missed_tick_behavior(behavior);
                waits.spawn(async move {
                    let ticks = in_time(interval, start).await;
                    // The immediate one, and all that fit in.
                    let expected = LENGTH.as_nanos() / period.as_nanos() + 1;
                    assert_eq!(u128::from(ticks), expected, "{period:?}");
                });
            }
        }
    }
    while let Some(wait) = waits.join_next().await {
        wait.expect("no tick is off");
    }
    assert!(start.elapsed() < LENGTH + ms(1));
    for timer in timers.iter().chain([&Timer::current()]) {
        assert!(assert_settled(timer).fired() > 0);
    }
}

#[tokio::test(start_paused = true)]
async fn two_days_of_late_ticks_follow_the_behavior_to_the_nanosecond() {
    let start = Instant::now();
    let timer = timer_of(ms(1));
    let mut waits = JoinSet::new();
    for &period in PERIODS {
        for behavior in BEHAVIORS {
            for mut interval in [timer.interval(period), interval(period)] {
                interval.set_missed_tick_behavior(behavior);
                waits.spawn(held_up(interval, start));
            }
        }
    }
    while let Some(wait) = waits.join_next().await {
        wait.expect("no tick is off");
    }
    assert!(start.elapsed() >= DAY * 2);
    for timer in [&timer, &Timer::current()] {
        assert!(assert_settled(timer).fired() > 0);
    }
}
