//! Futures at the points where a counter wraps or a limit is reached: revolutions of dials, counters of ticks, segments of the
//! cells beside the slab, the 32 bits of a delay, the thirty years that a delay is cut to.
//!
//! `tests/wheel/wraps.rs` tests the dials and the counters of ticks for the wheel alone, against the model.

use tokio::task::JoinSet;
use tokio::time::advance;
use waterwheel::{Duration, Instant, Sleep, Timer};

use crate::support::{
    FAR, HOUR, Probe, assert_settled, ms, multi_thread, own_timer, paused, poll_once, us, waiting,
};
use crate::{DAY, timer_of, yield_until};

const RESOLUTIONS: [Duration; 4] = [us(100), ms(1), ms(10), ms(1_000)];

/// One revolution of each dial, two of the last, and the points where 32-bit counters of ticks wrap, signed and unsigned.
fn wraps(resolution: Duration) -> [Duration; 8] {
    let half = resolution * (1 << 31);
    [
        ms(1_000),
        ms(60_000),
        HOUR,
        DAY,
        DAY * 64,
        DAY * 128,
        half,
        half * 2,
    ]
}

#[test]
fn timers_across_every_wrap_fire_at_their_deadlines() {
    for resolution in RESOLUTIONS {
        // The first dial of a wheel of seconds has one slot, and wraps at each tick.
        let wraps = wraps(resolution).into_iter();
        for wrap in wraps.filter(|&wrap| wrap > resolution * 3) {
            for hand_is_held_back in [false, true] {
                let runtime = paused();
                runtime.block_on(across(resolution, wrap, hand_is_held_back));
            }
        }
    }
}

/// Moves the clock to three ticks before the wrap, counted from the timer's tick zero. Timers fire at each tick from there to
/// three ticks after the wrap.
async fn across(resolution: Duration, wrap: Duration, hand_is_held_back: bool) {
    let case = format!("{wrap:?} at {resolution:?}");
    let timer = timer_of(resolution);
    let start = Instant::now() + (wrap - resolution * 3);
    // With nothing pending, the hand jumps to the next deadline. With this timer pending, it goes dial by dial.
    let mut far = timer.sleep_until(start + wrap);
    if hand_is_held_back {
        assert!(poll_once(&mut far).is_pending());
    }
    advance(wrap - resolution * 3).await;

    let mut waits = JoinSet::new();
    let cancelled = Probe::new();
    let mut dropped = Vec::new();
    for ticks in 1..=6 {
        let deadline = start + resolution * ticks;
        let plain = timer.sleep_until(deadline);
        let mut postponed = waiting(timer.sleep_until(start + resolution));
        postponed.set_deadline(deadline);
        let mut earlier = waiting(timer.sleep_until(deadline + HOUR));
        earlier.set_deadline(deadline);
        for sleep in [plain, postponed, earlier] {
            let case = format!("{ticks} ticks from before {case}");
            waits.spawn(async move {
                sleep.await;
                assert_on_time(deadline, resolution, &case);
            });
        }
        let sleep = cancelled.waiting(timer.sleep_until(deadline));
        dropped.push(sleep);
    }
    drop(dropped);
    let mut interval = timer.interval_at(start + resolution, resolution);
    waits.spawn({
        let case = format!("an interval across {case}");
        async move {
            for ticks in 1..=6 {
                assert_eq!(interval.tick().await, start + resolution * ticks);
                assert_on_time(start + resolution * ticks, resolution, &case);
            }
        }
    });
    while let Some(wait) = waits.join_next().await {
        wait.unwrap_or_else(|_| panic!("{case}"));
    }
    assert_eq!(cancelled.wakes(), 0, "{case}");
    drop(far);
    let metrics = assert_settled(&timer);
    if resolution >= ms(1) {
        assert_eq!(metrics.fired(), 3 * 6 + 6, "{case}");
    }
}

/// tokio's paused clock moves by whole milliseconds, so a timer with finer ticks fires up to a millisecond late.
fn assert_on_time(deadline: Instant, resolution: Duration, case: &str) {
    let now = Instant::now();
    assert!(now >= deadline, "{:?} early, {case}", deadline - now);
    let slack = if resolution < ms(1) {
        ms(1)
    } else {
        Duration::ZERO
    };
    assert!(now - deadline <= slack, "{:?} late, {case}", now - deadline);
}

// A postponed deadline is in the cell of its timer's place. The cells are in segments that double in size.
#[tokio::test(start_paused = true)]
async fn postponing_at_the_ends_of_segments_spares_the_neighbours() {
    let timer = own_timer();
    let now = Instant::now();
    let (filed, postponed) = (Probe::new(), Probe::new());
    let ends: Vec<usize> = (6..=16)
        .flat_map(|log| [(1 << log) - 1, 1 << log])
        .collect();
    let is_end = |place: usize| ends.contains(&place);
    let mut sleeps: Vec<Sleep> = (0..70_000)
        .map(|_| timer.sleep_until(now + ms(10)))
        .collect();
    // A new slab hands out its places in order.
    for (place, sleep) in sleeps.iter_mut().enumerate() {
        let probe = if is_end(place) { &postponed } else { &filed };
        assert!(probe.poll(sleep).is_pending());
    }
    for &place in &ends {
        // The deadlines differ, so the test fails if two places share a cell.
        sleeps[place].set_deadline(now + ms(20 + place as u64));
    }

    advance(ms(10)).await;
    let others = sleeps.len() - ends.len();
    yield_until(|| filed.wakes() >= others).await;
    assert_eq!((filed.wakes(), postponed.wakes()), (others, 0));
    for (place, sleep) in sleeps.iter_mut().enumerate() {
        assert_eq!(poll_once(sleep).is_ready(), !is_end(place), "place {place}");
    }
    for &place in &ends {
        (&mut sleeps[place]).await;
        assert_eq!(now.elapsed(), ms(20 + place as u64), "place {place}");
    }
    assert_eq!(assert_settled(&timer).fired(), sleeps.len() as u64);
}

// On a clock that cannot be paused, the first poll of a long sleep trusts the clock read that made the sleep. The sleep keeps it
// as a 32-bit number of ticks. If that number wrapped, the poll would move the hand to the far deadline, and all timers armed
// after it would be due at once.
#[test]
fn delays_around_32_bits_of_ticks_leave_the_hand_where_it_is() {
    for resolution in RESOLUTIONS {
        let runtime = multi_thread(1);
        for ticks in (1_u64 << 32) - 6..=(1 << 32) + 6 {
            let builder = Timer::builder().resolution(resolution);
            let timer = builder.start_on(runtime.handle()).expect("a timer");
            let nanos = u64::try_from(resolution.as_nanos()).expect("a second at most") * ticks;
            for long in [nanos - 1, nanos, nanos + 1].map(Duration::from_nanos) {
                let mut long = timer.sleep(long);
                assert!(poll_once(&mut long).is_pending(), "{ticks} ticks");
                let mut soon = timer.sleep(ms(5_000));
                let is_early = poll_once(&mut soon).is_ready() && Instant::now() < soon.deadline();
                assert!(!is_early, "after {ticks} ticks of {resolution:?}");
                // The long sleep can be reset to the past, like any other.
                long.set_deadline(Instant::now() - resolution);
                assert!(poll_once(&mut long).is_ready(), "{ticks} ticks");
            }
            assert_settled(&timer);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn delays_near_thirty_years_end_at_the_tick_after_the_deadline() {
    for resolution in [ms(1), ms(10), ms(1_000)] {
        for (delay, ends) in [
            (FAR - resolution, FAR - resolution),
            (FAR - Duration::from_nanos(1), FAR),
            (FAR, FAR),
            (FAR + Duration::from_nanos(1), FAR),
            (FAR + resolution, FAR),
        ] {
            let timer = timer_of(resolution);
            let start = Instant::now();
            let mut sleep = timer.sleep(delay);
            assert_eq!(sleep.deadline(), start + delay.min(FAR));
            (&mut sleep).await;
            assert_eq!(start.elapsed(), ends, "{delay:?} at {resolution:?}");
            // A timer that is armed at that time is on time.
            timer.sleep(resolution).await;
            assert_eq!(start.elapsed(), ends + resolution);
            assert_settled(&timer);
        }
    }
}
