//! The driver does not run while nothing is due.

use std::thread;
use std::time::Instant as RealInstant;

use tokio::sync::oneshot;
use waterwheel::{Duration, Timer};

use crate::support::{
    HOUR, LIMIT, WAKINGS, current_thread, ms, multi_thread, own_timer, waiting, within,
};

/// Waits until the driver has had no turn for 200 ms. Less would not suffice: a busy machine may delay a turn.
pub(crate) fn settle(timer: &Timer) {
    let (mut turns, mut since) = (timer.metrics().driver_turns(), RealInstant::now());
    let start = RealInstant::now();
    while since.elapsed() < ms(200) {
        assert!(start.elapsed() < Duration::from_secs(5), "it never settles");
        thread::sleep(ms(2));
        let now = timer.metrics().driver_turns();
        if now != turns {
            (turns, since) = (now, RealInstant::now());
        }
    }
}

/// Runs `act` next to an idle current-thread runtime that another thread drives.
pub(crate) fn with_an_idle_runtime(act: impl FnOnce(&Timer)) {
    let runtime = current_thread();
    let timer = runtime.block_on(async { own_timer() });
    let (done, wait) = oneshot::channel::<()>();
    let driving = thread::spawn(move || runtime.block_on(wait));
    act(&timer);
    let _ = done.send(());
    let _ = driving.join().expect("it does not panic");
}

/// Asserts that the driver settles after a few turns at most.
fn assert_idle(timer: &Timer) {
    let before = timer.metrics().driver_turns();
    settle(timer);
    let turns = timer.metrics().driver_turns() - before;
    assert!(turns <= 10, "{turns} turns");
}

// netty#1246, netty#9710, pulsar#6414: an idle spin.
#[test]
fn idle_means_no_turns() {
    within(LIMIT, || {
        let check = |timer: &Timer| {
            // Before the first use.
            assert_idle(timer);
            // A far timer is pending.
            let far = waiting(timer.sleep(HOUR));
            assert_idle(timer);
            // No timer is pending, after one was cancelled and one has fired.
            drop(far);
            futures::executor::block_on(timer.sleep(ms(2)));
            assert_idle(timer);
            // A timer is pending that never fires.
            let _never = waiting(timer.sleep(Duration::MAX));
            assert_idle(timer);
        };
        thread::scope(|scope| {
            scope.spawn(|| with_an_idle_runtime(check));
            for waking in WAKINGS {
                scope.spawn(move || {
                    // With one worker, there would be no guard.
                    let runtime = multi_thread(2);
                    let timer = Timer::builder().waking(waking).start_on(runtime.handle());
                    check(&timer.expect("a timer"));
                });
            }
        });
    });
}

#[test]
fn cancelling_does_not_wake_the_driver() {
    within(LIMIT, || {
        let runtime = multi_thread(1);
        let timer = runtime.block_on(async { own_timer() });
        let naps: Vec<_> = (0..100)
            .map(|n| waiting(timer.sleep(HOUR + ms(n))))
            .collect();
        settle(&timer);
        let before = timer.metrics().driver_turns();
        drop(naps);
        thread::sleep(ms(50));
        assert_eq!(timer.metrics().driver_turns(), before);
    });
}
