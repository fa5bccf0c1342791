//! A call that races with the end of a timer is either accepted and stopped, or refused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use waterwheel::{Duration, Timer};

use crate::support::{
    HOUR, Probe, assert_over, metrics, ms, multi_thread, own_timer, poll_once, unless_over,
    waiting, within,
};

#[test]
fn a_future_racing_with_shutdown_is_either_stopped_or_refused() {
    within(Duration::from_secs(60), || {
        let runtime = multi_thread(2);
        let _entered = runtime.enter();
        for round in 0..200 {
            let timer = own_timer();
            let go = AtomicBool::new(false);
            let (count, mut taken) = thread::scope(|scope| {
                let racers: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(|| {
                            let mut taken = Vec::new();
                            while !go.load(Ordering::SeqCst) {
                                std::hint::spin_loop();
                            }
                            // A refusal ends the loop.
                            while let Ok(mut sleep) = timer.try_sleep(HOUR) {
                                let probe = Probe::new();
                                if probe.poll(&mut sleep).is_pending() {
                                    taken.push((sleep, probe));
                                } else {
                                    assert!(sleep.was_stopped());
                                }
                            }
                            taken
                        })
                    })
                    .collect();
                go.store(true, Ordering::SeqCst);
                for _ in 0..round * 20 {
                    std::hint::spin_loop();
                }
                let count = timer.shutdown();
                let mut taken = Vec::new();
                for racer in racers {
                    taken.extend(racer.join().expect("it does not panic"));
                }
                (count, taken)
            });
            assert_eq!(count, taken.len(), "round {round}");
            for (sleep, probe) in &mut taken {
                assert_eq!(probe.wakes(), 1);
                assert!(poll_once(sleep).is_ready() && sleep.was_stopped());
            }
            assert_eq!(metrics(&timer).stopped(), count as u64);
        }
    });
}

#[test]
fn a_sleep_that_races_with_the_end_of_its_runtime_is_woken() {
    within(Duration::from_secs(60), || {
        for _ in 0..100 {
            let runtime = multi_thread(1);
            let timer = runtime.block_on(async { own_timer() });
            let racer = thread::spawn(move || {
                let mut taken = Vec::new();
                while let Ok(mut sleep) = timer.try_sleep(HOUR - ms(taken.len() as u64)) {
                    if unless_over(|| poll_once(&mut sleep)).is_some() {
                        taken.push(sleep);
                    }
                }
                taken
            });
            drop(runtime);
            for mut sleep in racer
                .join()
                .expect("it does not panic")
                .into_iter()
                .take(100)
            {
                assert_over(|| futures::executor::block_on(&mut sleep));
            }
        }
    });
}

#[test]
fn shutdown_counts_right_under_contention() {
    within(Duration::from_secs(20), || {
        let runtime = multi_thread(2);
        let _entered = runtime.enter();
        for _ in 0..50 {
            let timer = own_timer();
            let _sleeps: Vec<_> = (0..100).map(|_| waiting(timer.sleep(HOUR))).collect();
            let counts = thread::scope(|scope| {
                let stoppers = [(); 4].map(|()| scope.spawn(|| timer.shutdown()));
                stoppers.map(|stopper| stopper.join().expect("it does not panic"))
            });
            assert_eq!(counts.iter().sum::<usize>(), 100);
            assert_eq!(counts.iter().filter(|&&count| count > 0).count(), 1);
        }
    });
}

// A driver that ended while the first shard is made and the last handle dropped would stop it.
#[test]
fn a_future_outlives_the_last_handle_in_any_race() {
    let runtime = multi_thread(1);
    for round in 0..10_000 {
        let builder = Timer::builder()
            .resolution(Duration::from_secs(1))
            .shards(1);
        let timer = builder.start_on(runtime.handle()).expect("it starts");
        for _ in 0..round % 2_000 {
            std::hint::spin_loop();
        }
        let mut nap = timer.sleep(HOUR);
        drop(timer);
        assert!(poll_once(&mut nap).is_pending());
        for _ in 0..2_000 {
            std::hint::spin_loop();
        }
        assert!(poll_once(&mut nap).is_pending(), "round {round}");
    }
}
