//! Code that is not ours: callbacks and destructors that panic, or use the timer that calls them.

use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use waterwheel::callback::{TimeoutHandle, Unrun};
use waterwheel::{Duration, Timer, sleep};

use crate::support::{
    HOUR, LIMIT, assert_settled, block_on_within, bounded_timer, ms, multi_thread, own_timer,
    paused, with_timer, within,
};
use crate::{Log, settle};

/// A panic that prints nothing.
fn throw() -> ! {
    panic::resume_unwind(Box::new("on purpose"))
}

/// Calls a function when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A callback that drops its captured value without using it.
fn holding<T: Send + 'static>(captured: T) -> impl FnOnce() + Send {
    move || drop(captured)
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_panics_harms_no_other() {
    let timer = bounded_timer(4);
    let log = Log::new();
    timer.call_after(ms(5), log.note("before"));
    let panics = timer.call_after(ms(5), || throw());
    // The payload's destructor panics as well.
    timer.call_after(ms(5), || panic::resume_unwind(Box::new(OnDrop(|| throw()))));
    timer.call_after(ms(5), log.note("after"));
    sleep(ms(5)).await;
    settle().await;
    assert_eq!(log.take(), ["before", "after"]);
    assert!(panics.is_expired() && !panics.cancel());
    // Their places are released.
    for _ in 0..4 {
        timer.try_call_after(ms(1), log.note("again")).unwrap();
    }
    timer.drain().await;
    assert_eq!(log.len(), 4);
    assert_settled(&timer);
}

#[tokio::test(start_paused = true)]
async fn a_destructor_that_panics_in_a_run_harms_no_other() {
    let timer = own_timer();
    let log = Log::new();
    let handle = timer.call_after(ms(5), holding(OnDrop(|| throw())));
    timer.call_after(ms(5), log.note("after"));
    sleep(ms(6)).await;
    assert!(handle.is_expired());
    assert_eq!(log.len(), 1);
    timer.drain().await;
}

#[tokio::test(start_paused = true)]
async fn a_destructor_that_panics_in_a_cancel_is_its_callers() {
    let timer = bounded_timer(1);
    let handle = timer.call_after(ms(5), holding(OnDrop(|| throw())));
    assert!(catch_unwind(AssertUnwindSafe(|| handle.cancel())).is_err());
    assert!(handle.is_cancelled() && !handle.cancel());
    // Everything else was done before.
    let next = timer.try_call_after(ms(5), || ()).unwrap();
    sleep(ms(6)).await;
    assert!(next.is_expired());
    timer.drain().await;
    assert_settled(&timer);
}

#[test]
fn destructors_that_panic_do_not_keep_a_timer_from_its_end() {
    for is_runtimes_end in [false, true] {
        let (runtime, timer) = with_timer(paused());
        let handles: Vec<_> = (0..10)
            .map(|_| timer.call_after(HOUR, holding(OnDrop(|| throw()))))
            .collect();
        // This one is due, and handed to a task that is never polled.
        let due = timer.call_at(timer.now(), holding(OnDrop(|| throw())));
        match is_runtimes_end {
            true => drop(runtime),
            false => assert_eq!(timer.shutdown(), 10),
        }
        assert!(handles.iter().all(TimeoutHandle::is_cancelled));
        assert_eq!(due.is_cancelled(), is_runtimes_end);
    }
}

#[test]
fn a_callback_may_do_anything_with_its_timer() {
    block_on_within(paused(), async || {
        let timer = Timer::builder().max_pending(3).start().unwrap();
        let log = Log::new();
        let (inner, seen) = (timer.clone(), log.clone());
        let own = Arc::new(Mutex::new(None::<TimeoutHandle>));
        let own_inside = Arc::clone(&own);
        let other = timer.call_after(ms(6), log.note("cancelled"));
        let other_inside = other.clone();
        let handle = timer.call_after(ms(5), move || {
            let own = own_inside.lock().unwrap().take().unwrap();
            assert!(own.is_expired() && !own.cancel(), "too late");
            assert!(other_inside.cancel());
            // There is room for three again, but no more.
            for _ in 0..3 {
                inner.call_after(ms(5), seen.note("submitted"));
            }
            assert!(inner.try_call_after(ms(5), || ()).is_err());
            assert_eq!(inner.metrics().pending(), 3);
            // This closure holds the last handle of the timer.
            seen.push("done");
        });
        *own.lock().unwrap() = Some(handle);
        drop(timer);
        sleep(ms(20)).await;
        assert_eq!(log.take(), ["done", "submitted", "submitted", "submitted"]);
        assert!(other.is_cancelled());
    });
}

// If a lock were held, using the timer in the destructor would deadlock.
#[test]
fn closures_are_dropped_with_no_lock_held() {
    type End = fn(&Timer, &TimeoutHandle);
    let ends: [(&str, End); 5] = [
        ("cancel", |_, handle| assert!(handle.cancel())),
        ("shutdown", |timer, _| assert!(timer.shutdown() > 0)),
        ("shutdown_now", |timer, _| drop(timer.shutdown_now())),
        ("run", |timer, _| {
            timer.shutdown_now().into_iter().for_each(Unrun::run);
        }),
        ("it runs by itself", |_, _| ()),
    ];
    for (name, end) in ends {
        let log = Log::new();
        let seen = log.clone();
        within(LIMIT, move || {
            let runtime = multi_thread(2);
            let timer = Timer::builder().max_pending(4).start_on(runtime.handle());
            let timer = timer.unwrap();
            let user = timer.clone();
            let uses = move || {
                let _ = user.try_call_after(HOUR, || ());
                let _ = user.try_call_at(user.now(), || ());
                let _ = user.metrics();
                user.shutdown();
                drop(user.shutdown_now());
                seen.push(());
            };
            // With this one the queue has a due callback as well.
            timer.call_at(timer.now(), || ());
            let mut uses = Some(uses);
            let captured = OnDrop(move || uses.take().into_iter().for_each(|uses| uses()));
            let delay = match name {
                "it runs by itself" => ms(1),
                _ => HOUR,
            };
            let handle = timer.call_after(delay, holding(captured));
            end(&timer, &handle);
            runtime.block_on(timer.drain());
            drop((handle, timer, runtime));
        });
        assert_eq!(log.len(), 1, "{name}");
    }
}

#[test]
fn a_refused_closure_is_dropped_with_no_lock_held() {
    block_on_within(paused(), async || {
        let timer = bounded_timer(1);
        let kept = timer.call_after(HOUR, || ());
        let user = Timer::clone(&timer);
        let refused = timer.try_call_after(
            Duration::ZERO,
            holding(OnDrop(move || {
                assert!(user.try_call_after(HOUR, || ()).is_err());
            })),
        );
        assert!(refused.is_err() && kept.cancel());
    });
}
