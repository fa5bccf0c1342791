//! Callbacks: their memory while they wait, and that nothing of it stays, however they end.

use std::hint::black_box;

use waterwheel::callback::{TimeoutHandle, Unrun};
use waterwheel::{Timer, sleep};

use crate::support::{Dice, HOUR, alone, inside, ms, multi_thread, paused, with_timer};
use crate::{HEAP, leaves_nothing};

/// The number of callbacks at a time.
const CALLBACKS: u64 = 10_000;

/// The size of each closure in bytes.
const CLOSURE: usize = size_of::<u64>();

/// Submits callbacks for an hour from now, each with a closure of [`CLOSURE`] bytes.
fn submit(timer: &Timer) -> Vec<TimeoutHandle> {
    let all = (0..CALLBACKS).map(|number| {
        timer.call_after(HOUR, move || {
            black_box(number);
        })
    });
    all.collect()
}

/// The number of bytes that `act` takes for each callback.
fn bytes<R>(act: impl FnOnce() -> R) -> (f64, R) {
    let before = HEAP.allocated() as f64;
    let result = act();
    (
        (HEAP.allocated() as f64 - before) / CALLBACKS as f64,
        result,
    )
}

// As the docs of `callback` say: about 150 bytes in addition to the closure, including the entry in the wheel.
#[test]
fn a_callback_that_waits_takes_150_bytes_beside_its_closure() {
    alone(|| {
        let runtime = multi_thread(1);
        let timer = inside(&runtime, || Timer::builder().shards(1).start().unwrap());
        // Allocate the timer's own structures first: shards, and the runner.
        assert!(timer.call_after(HOUR, || {}).cancel());
        let (waiting, handles) = bytes(|| submit(&timer));
        // The vector of handles belongs to the test.
        let beside = waiting - (size_of::<TimeoutHandle>() + CLOSURE) as f64;
        assert!((130.0..=160.0).contains(&beside), "{beside}");
        // Dropping the handles detaches the callbacks.
        let (freed, ()) = bytes(|| drop(handles));
        assert!(
            (freed + size_of::<TimeoutHandle>() as f64).abs() < 1.0,
            "{freed}"
        );
    });
}

#[test]
fn a_cancelled_callback_takes_no_more_than_its_handle_holds() {
    alone(|| {
        let runtime = multi_thread(1);
        let timer = inside(&runtime, || Timer::builder().shards(1).start().unwrap());
        // The notes and cells of a shard stay.
        assert!(submit(&timer).iter().all(TimeoutHandle::cancel));
        let (left, handles) = bytes(|| {
            let handles = submit(&timer);
            assert!(handles.iter().all(TimeoutHandle::cancel));
            handles
        });
        // Its allocation remains, including the space for the closure.
        let held = left - size_of::<TimeoutHandle>() as f64;
        assert!((1.0..=120.0).contains(&held), "{held}");
        let (freed, ()) = bytes(|| drop(handles));
        assert!((left + freed).abs() < 1.0, "{left}, and then {freed}");
    });
}

#[test]
fn callbacks_that_run_or_are_cancelled_leave_nothing() {
    alone(|| {
        let (runtime, timer) = with_timer(paused());
        leaves_nothing(|seed| {
            let mut dice = Dice(seed);
            runtime.block_on(async {
                let mut handles = Vec::new();
                for number in 0..300 {
                    let (delay, held) = (ms(dice.any_magnitude(100_000_000)), vec![number; 16]);
                    let callback = move || drop(held);
                    handles.push(match number % 2 {
                        0 => timer.call_after(delay, callback),
                        _ => Timer::current().call_after(delay, callback),
                    });
                    match dice.roll(4) {
                        0 => drop(handles.swap_remove(dice.roll(handles.len() as u64) as usize)),
                        1 => assert!(handles.swap_remove(handles.len() - 1).cancel()),
                        _ => {}
                    }
                }
                sleep(30 * HOUR).await;
                assert!(handles.iter().all(TimeoutHandle::is_expired));
            });
        });
    });
}

#[test]
fn callbacks_leave_nothing_however_their_timer_ends() {
    alone(|| {
        leaves_nothing(|number| {
            let runtime = match number % 2 {
                0 => multi_thread(1),
                _ => paused(),
            };
            let timer = inside(&runtime, || Timer::builder().start().unwrap());
            let callback = || {
                let held = vec![number; 16];
                move || drop(held)
            };
            let kept: Vec<_> = (0..100)
                .map(|_| timer.call_after(HOUR, callback()))
                .collect();
            // Some callbacks are due as the timer ends.
            for _ in 0..100 {
                drop(timer.call_at(timer.now(), callback()));
            }
            match number % 5 {
                0 => drop(timer.shutdown_now()),
                1 => timer.shutdown_now().into_iter().for_each(Unrun::run),
                2 => {
                    timer.shutdown();
                    runtime.block_on(timer.drain());
                }
                3 => {
                    assert!(kept.iter().all(TimeoutHandle::cancel));
                    runtime.block_on(timer.drain());
                }
                // The timer ends with its runtime.
                _ => {}
            }
            drop(runtime);
            assert!(kept.iter().all(TimeoutHandle::is_cancelled));
        });
    });
}
