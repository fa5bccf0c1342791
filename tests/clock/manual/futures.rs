//! The futures of a timer on a manual clock, in tasks.

use tokio::sync::mpsc;
use waterwheel::{Duration, ManualClock, MissedTickBehavior};

use super::on_both_flavors;
use crate::support::{eventually, ms};

#[test]
fn a_timeout_cuts_a_task_when_its_time_has_come() {
    on_both_flavors(|runtime, clock, timer| {
        let call = runtime.spawn(timer.timeout(ms(500), std::future::pending::<()>()));
        runtime.block_on(until_pending(timer, 1));
        clock.advance(ms(499));
        assert!(!call.is_finished());
        clock.advance(ms(1));
        assert!(runtime.block_on(call).unwrap().is_err());
    });
}

#[test]
fn an_interval_skips_what_the_clock_jumped_over() {
    on_both_flavors(|runtime, clock, timer| {
        let mut interval = timer.interval(ms(10));
        interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let begin = clock.now();
        let (sender, mut ticks) = mpsc::unbounded_channel();
        runtime.spawn(async move {
            for _ in 0..3 {
                sender.send(interval.tick().await).unwrap();
            }
        });
        runtime.block_on(async {
            assert_eq!(ticks.recv().await, Some(begin));
            until_pending(timer, 1).await;
            clock.advance(ms(35));
            assert_eq!(ticks.recv().await, Some(begin + ms(10)));
            until_pending(timer, 1).await;
            assert_eq!(clock.advance_to_next(), Some(begin + ms(40)));
            assert_eq!(ticks.recv().await, Some(begin + ms(40)));
        });
    });
}

// A day of heartbeats and retries, step by step: each task runs at its own time.
#[test]
fn a_day_is_simulated_step_by_step() {
    on_both_flavors(|runtime, clock, timer| {
        let hour = Duration::from_secs(3_600);
        let begin = clock.now();
        let task = {
            let (timer, clock) = (timer.clone(), clock.clone());
            runtime.spawn(async move {
                let mut woken_at = Vec::new();
                for _ in 0..24 {
                    timer.sleep(hour).await;
                    woken_at.push(clock.now() - begin);
                }
                woken_at
            })
        };
        for step in 1..=24 {
            runtime.block_on(until_pending(timer, 1));
            assert_eq!(clock.advance_to_next(), Some(begin + step * hour));
        }
        let woken_at = runtime.block_on(task).unwrap();
        assert!(woken_at.into_iter().eq((1..=24).map(|step| step * hour)));
    });
}

#[test]
fn nothing_turns_while_the_clock_stands_still() {
    on_both_flavors(|runtime, clock, timer| {
        let _sleep = runtime.spawn(timer.sleep(ms(1)));
        runtime.block_on(until_pending(timer, 1));
        let turns = || timer.metrics().driver_turns();
        let before = turns();
        // The control: the runtime's own timer, with the same delay, fires meanwhile.
        runtime.block_on(async { waterwheel::sleep(ms(30)).await });
        assert_eq!((turns(), timer.metrics().pending()), (before, 1));
        clock.advance(ms(1));
        assert!(turns() > before);
        assert_eq!(timer.metrics().pending(), 0);
    });
}

#[test]
fn the_clock_of_a_timer_is_not_the_runtimes() {
    on_both_flavors(|runtime, clock, timer| {
        let runtimes = runtime.block_on(async { waterwheel::Timer::current() });
        clock.advance(Duration::from_secs(86_400));
        assert_eq!(timer.now(), clock.now());
        assert!(runtimes.now() < clock.now());
        let standing = ManualClock::default();
        assert_eq!(standing.now(), standing.clone().now());
    });
}

/// Waits until this many timers are pending. The tasks that arm them run meanwhile.
async fn until_pending(timer: &waterwheel::Timer, pending: u64) {
    let handle = tokio::runtime::Handle::current();
    match handle.runtime_flavor() {
        tokio::runtime::RuntimeFlavor::CurrentThread => {
            // After some rounds, everything that can run has run.
            for _ in 0..1_000 {
                if timer.metrics().pending() == pending {
                    return;
                }
                tokio::task::yield_now().await;
            }
            panic!("{pending} timers are not pending: {:?}", timer.metrics());
        }
        _ => eventually("timers are pending", || {
            timer.metrics().pending() == pending
        }),
    }
}
