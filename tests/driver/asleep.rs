//! The driver's sleep: a timer that is armed meanwhile fires on time.

use std::thread;
use std::time::Instant as RealInstant;

use waterwheel::{Duration, Instant, Timer};

use crate::idle::{settle, with_an_idle_runtime};
use crate::support::{
    HOUR, LIMIT, Probe, WAKINGS, armed, eventually, ms, multi_thread, own_timer, waiting, within,
};

// tokio#6683, storm#4830: an earlier timer armed while the driver sleeps is missed.
#[test]
fn an_earlier_timer_armed_while_the_driver_sleeps_is_on_time() {
    within(LIMIT, || {
        for runtime in [multi_thread(1), multi_thread(2)] {
            for waking in WAKINGS {
                let timer = Timer::builder().waking(waking).start_on(runtime.handle());
                let timer = timer.expect("a timer");
                let mut naps = Vec::new();
                for seconds in [3_600, 600, 60, 10] {
                    let nap = waiting(timer.sleep(Duration::from_secs(seconds)));
                    naps.push(nap);
                    settle(&timer);
                }
                let probe = Probe::new();
                let _soon = armed(&timer, ms(50), |nap| probe.poll(nap));
                let start = RealInstant::now();
                eventually("it fires", || probe.wakes() == 1);
                assert!(start.elapsed() < Duration::from_secs(5));
            }
        }
    });
}

#[test]
fn an_earlier_timer_armed_outside_an_idle_runtime_is_on_time() {
    within(LIMIT, || {
        with_an_idle_runtime(|timer| {
            let _far = waiting(timer.sleep(HOUR));
            settle(timer);
            let probe = Probe::new();
            let _soon = armed(timer, ms(50), |nap| probe.poll(nap));
            eventually("it fires", || probe.wakes() == 1);
            let mut reset = probe.waiting(timer.sleep(HOUR));
            settle(timer);
            reset.set_deadline(Instant::now() + ms(20));
            eventually("it fires", || probe.wakes() == 2);
        });
    });
}

#[test]
fn an_earlier_timer_armed_at_any_moment_is_not_missed() {
    within(LIMIT, || {
        let runtime = multi_thread(2);
        let timer = runtime.block_on(async { own_timer() });
        thread::scope(|scope| {
            for thread in 0..4_u64 {
                let timer = &timer;
                scope.spawn(move || {
                    for round in 0..100_u64 {
                        let _far = waiting(timer.sleep(HOUR - ms(round)));
                        let delay = Duration::from_micros((round * 37 + thread * 11) % 3_000);
                        let start = RealInstant::now();
                        futures::executor::block_on(timer.sleep(delay));
                        assert!(start.elapsed() >= delay);
                        assert!(start.elapsed() < Duration::from_secs(5));
                    }
                });
            }
        });
    });
}

// embassy#4736: after an endless timer was cancelled, a short one never woke its task.
#[test]
fn a_short_sleep_after_a_cancelled_endless_one_is_on_time() {
    within(LIMIT, || {
        let runtime = multi_thread(2);
        for waking in WAKINGS {
            let timer = Timer::builder().waking(waking).start_on(runtime.handle());
            let timer = timer.expect("a timer");
            for the_driver_knows_of_it in [true, false] {
                let for_ever = waiting(timer.sleep(Duration::MAX));
                if the_driver_knows_of_it {
                    settle(&timer);
                }
                drop(for_ever);
                let probe = Probe::new();
                let _short = armed(&timer, ms(50), |nap| probe.poll(nap));
                eventually("it fires", || probe.wakes() == 1);
            }
        }
    });
}
