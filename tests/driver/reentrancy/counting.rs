//! The metrics add up, whatever runs in between.

use std::thread;

use waterwheel::{Duration, Instant, Sleep};

use crate::support::{
    Dice, Probe, eventually, metrics, ms, multi_thread, own_timer, poll_once, with_timer, within,
};

#[tokio::test(start_paused = true)]
async fn metrics_add_up_after_every_step() {
    for seed in 1..=30_u64 {
        let timer = own_timer();
        let mut dice = Dice(seed);
        let mut sleeps: Vec<Sleep> = Vec::new();
        for _ in 0..400 {
            let now = Instant::now();
            let at = dice.roll(sleeps.len() as u64 + 1) as usize;
            let sleep = sleeps.get_mut(at);
            match (dice.roll(8), sleep) {
                (0 | 1, _) | (_, None) => {
                    let mut sleep = timer.sleep(ms(dice.roll(3_000)));
                    let _ = poll_once(&mut sleep);
                    sleeps.push(sleep);
                }
                (2, Some(_)) => drop(sleeps.swap_remove(at)),
                (3, Some(sleep)) => sleep.set_deadline(now + ms(dice.roll(3_000))),
                (4, Some(sleep)) => sleep.set_deadline(now - ms(1)),
                (5, Some(_)) => tokio::time::advance(ms(dice.roll(400))).await,
                (_, Some(sleep)) => drop(poll_once(sleep)),
            }
            let metrics = metrics(&timer);
            // Count the pending ones only: a sleep that is not polled again after a reset does not wait.
            let waiting = sleeps.iter().filter(|sleep| !sleep.is_elapsed()).count();
            assert!(metrics.pending() <= waiting as u64, "{metrics}");
        }
        let pending = metrics(&timer).pending();
        assert_eq!(timer.shutdown() as u64, pending);
        assert_eq!(metrics(&timer).stopped(), pending);
        drop(sleeps);
        metrics(&timer);
    }
}

// netty#2651, #2662, KAFKA-2226: cancel races fire.
#[test]
fn metrics_add_up_when_cancels_and_resets_race_with_the_driver() {
    within(Duration::from_secs(40), || {
        let (_runtime, timer) = with_timer(multi_thread(2));
        thread::scope(|scope| {
            for thread in 0..4_u64 {
                let timer = &timer;
                scope.spawn(move || {
                    for round in 0..2_000_u64 {
                        let probe = Probe::new();
                        let micros = (round * 37 + thread * 101) % 2_500;
                        let mut sleep = timer.sleep(Duration::from_micros(micros));
                        let _ = probe.poll(&mut sleep);
                        match round % 4 {
                            0 => drop(sleep),
                            1 => {
                                sleep.set_deadline(Instant::now() + ms(1));
                                let _ = probe.poll(&mut sleep);
                                futures::executor::block_on(sleep);
                            }
                            2 => {
                                sleep.set_deadline(Instant::now() - ms(1));
                                assert!(poll_once(&mut sleep).is_ready());
                            }
                            _ => futures::executor::block_on(sleep),
                        }
                        assert!(probe.wakes() <= 2);
                        metrics(timer);
                    }
                });
            }
        });
        assert_eq!(metrics(&timer).pending(), 0);
        // A waker that was collected to be woken is dropped in the end.
        let last = Probe::new();
        let _sleep = last.waiting(timer.sleep(ms(1)));
        eventually("the driver goes on", || last.wakes() == 1);
    });
}

#[tokio::test(start_paused = true)]
async fn a_timer_of_seconds_cascades_once_and_one_of_less_never() {
    let timer = own_timer();
    timer.sleep(ms(900)).await;
    assert_eq!(metrics(&timer).cascaded(), 0);
    timer.sleep(ms(10_500)).await;
    assert_eq!(metrics(&timer).cascaded(), 1);
    timer.shutdown();
    assert_eq!(metrics(&timer).cascaded(), 1);
}
