//! The machine was suspended: the clock has jumped, and the time in between is not replayed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::advance;
use waterwheel::{Instant, MissedTickBehavior, Sleep, interval};

use crate::support::{HOUR, Probe, assert_settled, ms, own_timer, poll_once};
use crate::{DAY, yield_until};

/// The number of sleeps that come due during the suspend.
const DUE: u32 = 2_000;
/// The number of timers after which the driver yields.
const BATCH: u64 = 128;

// Netty: a long suspend was replayed tick by tick. tokio-util#5536 and the like: timers beyond a
// dial were lost in it.
#[tokio::test(start_paused = true)]
async fn after_a_suspend_a_few_turns_serve_what_is_due() {
    for suspend in [HOUR * 8, DAY * 30, DAY * 365 * 25] {
        let timer = own_timer();
        let resumes = Instant::now() + suspend;
        let (due_probe, later_probe) = (Probe::new(), Probe::new());
        let mut due: Vec<Sleep> = (1..=DUE)
            .map(|part| timer.sleep(suspend / DUE * part))
            .collect();
        let mut later: Vec<Sleep> = (1..=100)
            .map(|millis| timer.sleep_until(resumes + ms(millis)))
            .collect();
        assert!(due.iter_mut().all(|it| due_probe.poll(it).is_pending()));
        assert!(later.iter_mut().all(|it| later_probe.poll(it).is_pending()));
        // Filed within the suspend, and then postponed beyond it.
        for millis in 101..=200 {
            let mut postponed = later_probe.waiting(timer.sleep(suspend / 200 * millis as u32));
            postponed.set_deadline(resumes + ms(millis));
            later.push(postponed);
        }
        // Heartbeats of 10 ms, which would have ticked a hundred times a second.
        let ticks = Arc::new(AtomicU64::new(0));
        let heartbeats: Vec<_> = (0..10)
            .map(|_| {
                let (timer, ticks) = (timer.clone(), Arc::clone(&ticks));
                tokio::spawn(async move {
                    let mut heartbeat = timer.interval(ms(10));
                    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Skip);
                    loop {
                        heartbeat.tick().await;
                        ticks.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        yield_until(|| ticks.load(Ordering::Relaxed) == 10).await;
        let before = timer.metrics().driver_turns();

        advance(suspend).await;
        let beaten = || ticks.load(Ordering::Relaxed) == 20;
        yield_until(|| due_probe.wakes() == DUE as usize && beaten()).await;
        assert_eq!(Instant::now(), resumes);
        assert_eq!((due_probe.wakes(), later_probe.wakes()), (DUE as usize, 0));
        assert!(beaten(), "one tick each, on the spot");
        assert!(due.iter_mut().all(|sleep| poll_once(sleep).is_ready()));
        assert!(later.iter_mut().all(|sleep| poll_once(sleep).is_pending()));
        let turns = timer.metrics().driver_turns() - before;
        let batches = u64::from(DUE) / BATCH;
        assert!(turns <= batches + 16, "{turns} turns for {suspend:?}");

        // The timers go on, to the millisecond.
        for mut sleep in later {
            (&mut sleep).await;
            assert_eq!(Instant::now(), sleep.deadline());
        }
        for heartbeat in heartbeats {
            heartbeat.abort();
            assert!(heartbeat.await.is_err_and(|error| error.is_cancelled()));
        }
        assert_settled(&timer);
    }
}

/// The ticks of a one-second interval after a suspend of `hours` and a part of a second: in seconds
/// from its start, the ticks at the moment of resumption, and when the three after them come.
async fn resumption(behavior: MissedTickBehavior, hours: u32) -> (Vec<f64>, Vec<f64>, u64) {
    let start = Instant::now();
    let mut seconds = interval(ms(1_000));
    seconds.set_missed_tick_behavior(behavior);
    assert_eq!(seconds.tick().await, start);
    advance(HOUR * hours + ms(250)).await;
    let resumed = Instant::now();
    let (mut at_once, mut after) = (Vec::new(), Vec::new());
    while after.len() < 3 {
        let tick = seconds.tick().await;
        if Instant::now() == resumed {
            at_once.push((tick - start).as_secs_f64());
        } else {
            assert_eq!(Instant::now(), tick, "{behavior:?}");
            after.push((tick - start).as_secs_f64());
        }
    }
    (at_once, after, seconds.missed_ticks())
}

// spring#18458: a burst after a suspend that no user had asked for.
#[tokio::test(start_paused = true)]
async fn after_a_suspend_an_interval_does_as_its_behavior_says() {
    for hours in [1, 8] {
        let passed = 3_600 * u64::from(hours);
        let seconds = |from: u64, to: u64| (from..=to).map(|it| it as f64).collect::<Vec<_>>();
        let in_step = seconds(passed + 1, passed + 3);
        let shifted: Vec<f64> = in_step.iter().map(|second| second + 0.25).collect();
        for (behavior, at_once, after) in [
            (MissedTickBehavior::Burst, passed, &in_step),
            (MissedTickBehavior::Delay, 1, &shifted),
            (MissedTickBehavior::Skip, 1, &in_step),
        ] {
            let resumed = resumption(behavior, hours).await;
            let expected = (seconds(1, at_once), after.clone(), passed);
            assert!(resumed == expected, "{behavior:?} after {hours} h");
        }
    }
}

// Repeatedly: suspends of all lengths, with a sleep across each and one right after it.
#[tokio::test(start_paused = true)]
async fn suspends_of_all_lengths_in_a_row_leave_a_timer_on_time() {
    let timer = own_timer();
    let mut millis = 1;
    while millis < 86_400_000 * 365 {
        let suspend = ms(millis);
        let mut across = timer.sleep(suspend / 2);
        let mut behind = timer.sleep(suspend + ms(1));
        let probe = Probe::new();
        assert!(probe.poll(&mut across).is_pending() && probe.poll(&mut behind).is_pending());
        // Lets the driver see the pending timers.
        tokio::task::yield_now().await;
        let before = timer.metrics().driver_turns();
        advance(suspend).await;
        yield_until(|| probe.wakes() > 0).await;
        assert_eq!(probe.wakes(), 1, "{suspend:?}");
        assert!(poll_once(&mut across).is_ready() && poll_once(&mut behind).is_pending());
        let turns = timer.metrics().driver_turns() - before;
        assert!(turns <= 4, "{turns} turns for {suspend:?}");
        let deadline = behind.deadline();
        behind.await;
        assert_eq!(Instant::now(), deadline, "{suspend:?}");
        millis = millis * 5 / 3 + 1;
    }
    assert_settled(&timer);
}
