//! A herd, of which a part has been served when its runtime is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use waterwheel::{Duration, Instant, Sleep, Timer, sleep, sleep_until};

use crate::support::{
    HOUR, Probe, inside, metrics, ms, multi_thread, own_timer, poll_once, poll_with, within,
};

const LIMIT: Duration = Duration::from_secs(60);
const HERD: u64 = 50_000;
/// The runtime may be gone before the herd came, or after; so many times in a row it is not.
const ROUNDS: usize = 10;

#[test]
fn a_runtime_that_is_dropped_in_the_middle_of_a_herd_strands_nobody() {
    within(LIMIT, || {
        for _ in 0..ROUNDS {
            let runtime = multi_thread(2);
            let timer = inside(&runtime, own_timer);
            let probe = Probe::new();
            let waker = probe.waker();
            let deadline = Instant::now() + ms(300);
            let mut naps: Vec<Sleep> = (0..HERD).map(|_| timer.sleep_until(deadline)).collect();
            for nap in &mut naps {
                let _ = poll_with(nap, &waker);
            }
            let armed = metrics(&timer).armed();
            while timer.metrics().fired() == 0 {
                thread::yield_now();
            }
            drop(runtime);
            // Each that was armed is woken, once: it was fired, or it was stopped.
            let metrics = metrics(&timer);
            assert_eq!(metrics.pending(), 0);
            assert_eq!(metrics.fired() + metrics.stopped(), armed);
            assert_eq!(probe.wakes() as u64, armed);
            drop(waker);
            assert_eq!(probe.held(), 0);
            assert!(naps.iter_mut().all(|nap| poll_once(nap).is_ready()));
            drop(naps);
            if metrics.fired() > 0 && metrics.stopped() > 0 {
                return;
            }
        }
        panic!("no runtime was dropped in the middle");
    });
}

// As above with tasks: the driver wakes them while the runtime drops them.
#[test]
fn tasks_of_a_herd_that_are_dropped_with_their_runtime_leave_nothing_pending() {
    /// Counts the tasks that end. A panic, which tokio would catch, counts as none.
    struct Ends(Arc<AtomicU64>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0
                .fetch_add(u64::from(!thread::panicking()), Ordering::SeqCst);
        }
    }
    within(LIMIT, || {
        for _ in 0..ROUNDS {
            let runtime = multi_thread(2);
            // The ambient one: tasks that run while their runtime ends may still use it.
            let timer = inside(&runtime, Timer::current);
            let (ended, awake) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let deadline = Instant::now() + ms(400);
            for _ in 0..HERD / 2 {
                let awake = Arc::clone(&awake);
                let ends = Ends(Arc::clone(&ended));
                runtime.spawn(async move {
                    let _ends = ends;
                    sleep_until(deadline).await;
                    awake.fetch_add(1, Ordering::SeqCst);
                    sleep(HOUR).await;
                });
            }
            while awake.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            drop(runtime);
            assert_eq!(ended.load(Ordering::SeqCst), HERD / 2);
            assert_eq!(metrics(&timer).pending(), 0);
            if awake.load(Ordering::SeqCst) < HERD / 2 {
                return;
            }
        }
        panic!("no runtime was dropped in the middle");
    });
}
