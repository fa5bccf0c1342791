//! Wakers that misbehave more than those in `tests/driver/reentrancy`: with several timers, with the
//! runtime itself, with panics in panics, and replaced at the moment of firing.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::thread;

use tokio::runtime::Runtime;
use waterwheel::{Duration, Instant, Sleep, Timer};

use crate::support::{
    HOUR, Probe, assert_over, eventually, inside, metrics, ms, multi_thread, own_timer,
    poll_giving, poll_once, us, waiting_with, waker_on_wake, with_timer_within, within,
};

const LIMIT: Duration = Duration::from_secs(30);

// pingora-timeout: a wake-up was lost between checking whether the timer has fired and storing
// the waker.
#[test]
fn the_last_waker_to_be_stored_is_woken_however_late() {
    within(LIMIT, || {
        let runtime = multi_thread(1);
        let builder = Timer::builder().resolution(us(100));
        let timer = builder.start_on(runtime.handle()).expect("a timer");
        let mut waited = 0;
        for round in 0..1_000 {
            let mut nap = timer.sleep(us(150 + round % 100));
            let until = nap.deadline() - us(round * 7 % 20);
            // Each poll has another waker.
            let last = loop {
                let probe = Probe::new();
                if probe.poll(&mut nap).is_ready() {
                    break None;
                }
                if Instant::now() >= until {
                    break Some(probe);
                }
            };
            if let Some(last) = last {
                eventually("the last waker is woken", || last.wakes() == 1);
                assert!(poll_once(&mut nap).is_ready());
                waited += 1;
            }
        }
        assert!(waited > 100, "{waited} of 1000 were left to the driver");
    });
}

/// The payload of a panic that panics itself when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            resume_unwind(Box::new(()));
        }
    }
}

fn panics_with_a_bomb() -> Waker {
    waker_on_wake(|| resume_unwind(Box::new(Bomb)))
}

#[tokio::test(start_paused = true)]
async fn a_panic_whose_payload_panics_strands_no_waiter() {
    for ends_by_shutdown in [false, true] {
        let timer = own_timer();
        let probe = Probe::new();
        let mut naps: Vec<_> = (0..300).map(|_| timer.sleep(ms(5))).collect();
        for (n, nap) in naps.iter_mut().enumerate() {
            let poll = match n % 3 {
                0 => poll_giving(nap, panics_with_a_bomb()),
                _ => probe.poll(nap),
            };
            assert!(poll.is_pending());
        }
        if ends_by_shutdown {
            assert_eq!(timer.shutdown(), 300);
        } else {
            tokio::time::sleep(ms(10)).await;
            // The driver goes on.
            timer.sleep(ms(5)).await;
        }
        assert_eq!((probe.wakes(), probe.held()), (200, 0));
        assert!(naps.iter_mut().all(|nap| poll_once(nap).is_ready()));
        assert_eq!(metrics(&timer).pending(), 0);
    }
}

/// Two timers whose wakers each use the other one.
#[derive(Clone)]
struct Match {
    timers: [Timer; 2],
    sleeps: Arc<[Mutex<Vec<Sleep>>; 2]>,
    strokes: Arc<AtomicUsize>,
}

impl Match {
    fn serve(&self, side: usize) {
        while let Ok(mut sleep) = self.timers[side].try_sleep(us(300)) {
            let its = self.clone();
            let waker = waker_on_wake(move || its.strike(1 - side));
            if poll_giving(&mut sleep, waker).is_pending() {
                return self.sleeps(side).push(sleep);
            }
        }
    }

    /// Moves and drops the sleeps on this side, and arms new ones.
    fn strike(&self, side: usize) {
        self.strokes.fetch_add(1, Ordering::SeqCst);
        let mut sleeps = std::mem::take(&mut *self.sleeps(side));
        sleeps.retain(|sleep| !sleep.is_elapsed());
        for sleep in &mut sleeps {
            let deadline = sleep.deadline();
            sleep.set_deadline(deadline + ms(1));
            sleep.set_deadline(deadline);
        }
        self.sleeps(side).append(&mut sleeps);
        self.serve(side);
    }

    fn sleeps(&self, side: usize) -> std::sync::MutexGuard<'_, Vec<Sleep>> {
        self.sleeps[side]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[test]
fn two_timers_whose_wakers_use_each_other_do_not_deadlock() {
    within(LIMIT, || {
        let runtimes = [multi_thread(1), multi_thread(1)];
        let played = Match {
            timers: runtimes
                .each_ref()
                .map(|runtime| inside(runtime, own_timer).clone()),
            sleeps: Arc::default(),
            strokes: Arc::default(),
        };
        for n in 0..20 {
            played.serve(n % 2);
        }
        eventually("two thousand strokes", || {
            played.strokes.load(Ordering::SeqCst) > 2_000
        });
        for timer in &played.timers {
            timer.shutdown();
        }
        for side in 0..2 {
            let sleeps = std::mem::take(&mut *played.sleeps(side));
            drop(sleeps);
            assert_eq!(metrics(&played.timers[side]).pending(), 0);
        }
    });
}

#[test]
fn a_waker_may_shut_its_own_runtime_down() {
    with_timer_within(multi_thread(2), |runtime, timer| {
        let kept: Arc<Mutex<Option<Runtime>>> = Arc::default();
        let shuts_down = waker_on_wake({
            let kept = Arc::clone(&kept);
            move || {
                let runtime = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
                runtime.expect("it is woken once").shutdown_background();
            }
        });
        let probe = Probe::new();
        let deadline = Instant::now() + ms(100);
        // Some of its neighbours are woken before it, some after it, and some are far away.
        let mut naps: Vec<_> = (0..1_000).map(|_| timer.sleep_until(deadline)).collect();
        naps.extend((0..100).map(|_| timer.sleep(HOUR)));
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(runtime);
        let mut shuts_down = Some(shuts_down);
        for (n, nap) in naps.iter_mut().enumerate() {
            let poll = match n {
                500 => poll_giving(nap, shuts_down.take().expect("there is one")),
                _ => probe.poll(nap),
            };
            assert!(poll.is_pending());
        }
        eventually("all others are woken", || probe.wakes() == 1_099);
        eventually("the timer is stopped", || timer.is_stopped());
        let far = naps.split_off(1_000);
        assert!(naps.iter_mut().all(|nap| poll_once(nap).is_ready()));
        for mut nap in far {
            assert_over(|| poll_once(&mut nap));
        }
        assert_eq!(metrics(&timer).pending(), 0);
    });
}

#[test]
fn a_waker_may_drop_the_last_handle_and_future_of_its_timer() {
    within(LIMIT, || {
        let runtime = multi_thread(1);
        // This is the only handle.
        let timer = inside(&runtime, own_timer).clone();
        let last: Arc<Mutex<Option<(Timer, Sleep)>>> = Arc::default();
        let waker = waker_on_wake({
            let last = Arc::clone(&last);
            move || drop(last.lock().unwrap_or_else(PoisonError::into_inner).take())
        });
        let nap = waiting_with(timer.sleep(ms(100)), waker);
        *last.lock().unwrap_or_else(PoisonError::into_inner) = Some((timer, nap));
        let tasks = || runtime.metrics().num_alive_tasks();
        assert_eq!(tasks(), 1);
        eventually("the driver ends", || tasks() == 0);
        assert!(last.lock().is_ok_and(|last| last.is_none()));
    });
}
