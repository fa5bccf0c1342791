//! Futures that end in unusual places.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::thread;

use waterwheel::{Duration, Instant, Sleep, Timer, sleep};

use crate::support::{
    HOUR, Probe, alone, current_thread, inside, metrics, ms, multi_thread, own_timer, paused,
    poll_once, waiting, with_timer,
};

#[tokio::test(start_paused = true)]
async fn a_forgotten_sleep_still_wakes_and_holds_nothing_up() {
    let timer = own_timer();
    let probe = Probe::new();
    let forgotten = probe.waiting(timer.sleep(ms(5)));
    std::mem::forget(forgotten);
    std::mem::forget(timer.sleep(ms(5)));
    timer.sleep(ms(10)).await;
    assert_eq!((probe.wakes(), probe.held()), (1, 0));
    assert_eq!(metrics(&timer).pending(), 0);
    let second = probe.waiting(timer.sleep(HOUR));
    std::mem::forget(second);
    assert_eq!(timer.shutdown(), 1);
    assert_eq!(probe.wakes(), 2);
}

// A panic in such a destructor aborts the process.
#[test]
fn a_thread_locals_destructor_may_drop_a_sleep() {
    alone(|| {
        thread_local! {
            static KEPT: RefCell<Vec<Sleep>> = const { RefCell::new(Vec::new()) };
        }
        let runtime = multi_thread(1);
        let paused = paused();
        let timer = inside(&runtime, own_timer);
        let paused_timer = inside(&paused, own_timer);
        let handle = runtime.handle().clone();
        // Thread-locals are destroyed in an order that depends on that of their creation. Both are tried.
        for kept_first in [true, false] {
            let (timer, paused_timer, handle) =
                (timer.clone(), paused_timer.clone(), handle.clone());
            let ends = thread::spawn(move || {
                if kept_first {
                    KEPT.with_borrow_mut(Vec::clear);
                }
                let _entered = handle.enter();
                let mut sleeps = vec![sleep(HOUR), timer.sleep(HOUR), paused_timer.sleep(HOUR)];
                assert!(sleeps.iter_mut().all(|sleep| poll_once(sleep).is_pending()));
                // These are not polled.
                sleeps.extend([sleep(HOUR), timer.sleep(HOUR), paused_timer.sleep(HOUR)]);
                KEPT.with_borrow_mut(|kept| kept.append(&mut sleeps));
            });
            ends.join().expect("it does not panic");
        }
        for timer in [&*timer, &*paused_timer, &inside(&runtime, Timer::current)] {
            let metrics = metrics(timer);
            assert_eq!((metrics.cancelled(), metrics.pending()), (2, 0));
        }
    });
}

#[test]
fn a_thread_local_may_drop_a_sleep_of_a_dropped_runtime() {
    alone(|| {
        thread_local! {
            static KEPT: RefCell<Option<(Sleep, Timer)>> = const { RefCell::new(None) };
        }
        let ends = thread::spawn(|| {
            let runtime = current_thread();
            let last = waiting(inside(&runtime, || sleep(HOUR)));
            KEPT.set(Some((last, inside(&runtime, Timer::current))));
            drop(runtime);
        });
        ends.join().expect("it does not panic");
    });
}

#[test]
fn a_sleep_may_be_dropped_while_its_thread_unwinds() {
    alone(|| {
        let (_runtime, timer) = with_timer(multi_thread(1));
        let locked = Arc::new(Mutex::new(()));
        let unwinds = thread::spawn({
            let (timer, locked) = (timer.clone(), Arc::clone(&locked));
            move || {
                let _guard = locked.lock();
                let _polled = waiting(timer.sleep(HOUR));
                let _unpolled = timer.sleep(HOUR);
                let _interval = timer.interval(HOUR);
                resume_unwind(Box::new("on purpose"));
            }
        });
        assert!(unwinds.join().is_err());
        assert!(locked.is_poisoned());
        let metrics = metrics(&timer);
        assert_eq!((metrics.cancelled(), metrics.pending()), (1, 0));
        futures::executor::block_on(timer.sleep(ms(1)));
    });
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_or_is_aborted_cancels_its_sleeps() {
    let timer = own_timer();
    let aborted = tokio::spawn(timer.sleep(HOUR));
    let panicking = tokio::spawn({
        let timer = timer.clone();
        async move {
            let _sleep = waiting(timer.sleep(HOUR));
            resume_unwind(Box::new("on purpose"));
        }
    });
    tokio::task::yield_now().await;
    aborted.abort();
    assert!(aborted.await.is_err() && panicking.await.is_err());
    let metrics = metrics(&timer);
    assert_eq!((metrics.cancelled(), metrics.pending()), (2, 0));
}

// In such a destructor the thread has no runtime context in which the clock could be read.
#[test]
fn a_timer_may_be_used_in_the_destructor_of_a_thread_local() {
    struct Uses(Timer);
    impl Drop for Uses {
        fn drop(&mut self) {
            let past = Instant::now() - Duration::from_millis(1);
            assert!(poll_once(&mut self.0.sleep_until(past)).is_ready());
            assert!(poll_once(&mut self.0.sleep(HOUR)).is_pending());
        }
    }
    thread_local! {
        static KEPT: RefCell<Option<Uses>> = const { RefCell::new(None) };
    }
    // A panic in the destructor aborts the process.
    alone(|| {
        for timer in [current_thread(), multi_thread(1)].map(|runtime| {
            let timer = inside(&runtime, own_timer);
            std::mem::forget(runtime);
            timer
        }) {
            let uses = Uses(timer.clone());
            let ends = thread::spawn(move || {
                KEPT.set(Some(uses));
                // tokio's context is made after `KEPT`, so it is destroyed before it.
                assert!(tokio::runtime::Handle::try_current().is_err());
            });
            ends.join().expect("it does not panic");
            let metrics = metrics(&timer);
            assert_eq!((metrics.cancelled(), metrics.pending()), (1, 0));
        }
    });
}
