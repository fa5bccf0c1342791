//! `max_pending` counts callbacks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use waterwheel::{Duration, Timer, sleep};

use crate::support::{
    Dice, HOUR, LIMIT, assert_panics_here, assert_settled, bounded_timer, eventually, inside, ms,
    multi_thread, us, within,
};
use crate::{Blocker, Log, settle};

#[tokio::test(start_paused = true)]
async fn the_next_one_is_refused_with_a_typed_error() {
    let timer = bounded_timer(3);
    let future = timer.sleep(HOUR);
    let first = timer.call_after(ms(5), || ());
    let second = timer.call_after(HOUR, || ());
    let held = Arc::new(());
    let capture = Arc::clone(&held);
    let refused = timer.try_call_after(ms(1), move || drop(capture));
    assert!(refused.unwrap_err().is_at_capacity());
    assert_eq!(Arc::strong_count(&held), 1, "the closure is dropped");
    let refused = timer.try_call_at(timer.now(), || ());
    assert!(refused.unwrap_err().is_at_capacity());
    assert_panics_here(&["max_pending"], || timer.call_after(ms(1), || ()));
    assert_panics_here(&["max_pending"], || timer.call_at(timer.now(), || ()));
    // A cancel releases its place, once.
    assert!(second.cancel() && !second.cancel());
    let third = timer.try_call_after(HOUR, || ()).unwrap();
    assert!(timer.try_call_after(HOUR, || ()).is_err());
    // A run releases its place, too.
    sleep(ms(5)).await;
    settle().await;
    assert!(first.is_expired());
    let fourth = timer.try_call_after(HOUR, || ()).unwrap();
    assert!(timer.try_sleep(HOUR).unwrap_err().is_at_capacity());
    drop(future);
    assert!(timer.try_call_after(HOUR, || ()).unwrap().cancel());
    assert!(third.cancel() && fourth.cancel());
    // A refusal does not hold up a drain.
    timer.drain().await;
    assert_settled(&timer);
}

#[test]
fn a_callback_that_is_due_holds_its_place_until_it_begins() {
    within(LIMIT, || {
        let runtime = multi_thread(2);
        let timer = inside(&runtime, || bounded_timer(1));
        let blocker = Blocker::start(&timer);
        // A running callback holds no place.
        let due = timer.call_after(Duration::ZERO, || ());
        eventually("it is due", || timer.metrics().pending() == 0);
        assert!(timer.try_call_after(HOUR, || ()).is_err());
        assert!(due.cancel());
        // A callback that is due as it is submitted holds its place, too.
        let due = timer.call_at(timer.now() - ms(5), || ());
        assert!(timer.try_call_at(timer.now() - ms(5), || ()).is_err());
        drop(blocker);
        eventually("it runs", || due.is_expired());
        // Its place is free before its closure is called, shortly after it is expired.
        eventually("its place is free", || {
            timer.try_call_after(HOUR, || ()).is_ok()
        });
    });
}

// A heartbeat resubmits itself like this. It may fire while the thread that submits it is still doing so.
#[test]
fn a_callback_finds_its_own_place_free() {
    fn again(timer: Timer, left: usize, log: Log<bool>) {
        let next = (timer.clone(), log.clone());
        let submitted = timer.try_call_after(us(left as u64 % 3), move || {
            if left > 0 {
                again(next.0, left - 1, next.1);
            }
        });
        log.push(submitted.is_ok());
    }
    within(LIMIT, || {
        let runtime = multi_thread(2);
        let timer = Timer::builder().max_pending(1).start_on(runtime.handle());
        let timer = timer.unwrap();
        let log = Log::new();
        again(timer, 2_000, log.clone());
        eventually("the last one has run or was refused", || log.len() == 2_001);
        assert!(log.take().into_iter().all(|is_taken| is_taken));
    });
}

#[test]
fn the_count_is_exact_after_threads_have_raced() {
    const MOST: usize = 8;
    within(LIMIT, || {
        let runtime = multi_thread(2);
        let timer = inside(&runtime, || bounded_timer(MOST));
        let refusals = AtomicUsize::new(0);
        thread::scope(|scope| {
            for seed in 0..4 {
                let (timer, refusals) = (&timer, &refusals);
                scope.spawn(move || {
                    let mut dice = Dice(seed);
                    let mut handles = Vec::new();
                    for _ in 0..5_000 {
                        match timer.try_call_after(us(dice.roll(300)), || ()) {
                            Ok(handle) => handles.push(handle),
                            Err(error) => {
                                assert!(error.is_at_capacity());
                                refusals.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                        if dice.roll(2) == 0 {
                            let _ = handles.pop().is_some_and(|handle| handle.cancel());
                        }
                    }
                });
            }
        });
        assert!(refusals.into_inner() > 0, "or the bound was never reached");
        let all_free = || {
            let taken: Vec<_> = (0..MOST)
                .map_while(|_| timer.try_call_after(HOUR, || ()).ok())
                .collect();
            let is_exact = taken.len() == MOST && timer.try_call_after(HOUR, || ()).is_err();
            assert!(taken.iter().all(|handle| handle.cancel()));
            is_exact
        };
        eventually("each place is free, and no more", all_free);
        assert_settled(&timer);
    });
}
