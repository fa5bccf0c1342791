//! Threads that submit and cancel at random, in real time: each callback runs once or is cancelled, and none is early.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use waterwheel::{Duration, Instant, Timer, Waking};

use crate::support::{Dice, LIMIT, assert_settled, eventually, multi_thread, us, within};

const LENGTH: Duration = Duration::from_millis(1_000);

#[derive(Default)]
struct Counts {
    ran: AtomicU64,
    early: AtomicU64,
    cancelled: AtomicU64,
    too_late: AtomicU64,
}

#[test]
fn each_callback_runs_once_or_is_cancelled_by_threads_at_random() {
    for (waking, shards) in [(Waking::Watched, 4), (Waking::Thread, 1)] {
        within(LIMIT, move || stress(waking, shards));
    }
}

fn stress(waking: Waking, shards: usize) {
    let runtime = multi_thread(2);
    let builder = Timer::builder().shards(shards).waking(waking);
    let timer = builder.start_on(runtime.handle()).expect("it starts");
    let counts = Arc::new(Counts::default());
    let end = Instant::now() + LENGTH;
    let submitted: u64 = thread::scope(|scope| {
        let threads = [1, 2, 3].map(|seed| {
            let (timer, counts) = (&timer, &counts);
            scope.spawn(move || {
                let mut dice = Dice(seed);
                let mut submitted = 0;
                while Instant::now() < end {
                    submitted += one_callback(timer, counts, &mut dice);
                }
                submitted
            })
        });
        threads.into_iter().map(|it| it.join().unwrap()).sum()
    });
    runtime.block_on(timer.drain());
    let count = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
    assert_eq!(count(&counts.early), 0);
    assert_eq!(count(&counts.ran) + count(&counts.cancelled), submitted);
    let races = [&counts.ran, &counts.cancelled, &counts.too_late].map(count);
    assert!(races.iter().all(|&count| count > 10), "{races:?}");
    eventually("the counters add up", || timer.metrics().pending() == 0);
    assert_settled(&timer);
}

/// Submits a callback, and cancels it around its due time, or not at all. Returns how many it submitted.
fn one_callback(timer: &Timer, counts: &Arc<Counts>, dice: &mut Dice) -> u64 {
    let deadline = Instant::now() + us(dice.roll(300));
    let seen = Arc::clone(counts);
    let handle = timer.call_at(deadline, move || {
        let is_early = Instant::now() < deadline;
        seen.early.fetch_add(u64::from(is_early), Ordering::SeqCst);
        seen.ran.fetch_add(1, Ordering::SeqCst);
    });
    match dice.roll(4) {
        0 => return 1,
        1 => {}
        _ => {
            let until = Instant::now() + us(dice.roll(900));
            while Instant::now() < until {
                thread::yield_now();
            }
        }
    }
    let counter = match handle.cancel() {
        true => &counts.cancelled,
        false => &counts.too_late,
    };
    counter.fetch_add(1, Ordering::SeqCst);
    assert!(handle.is_expired() != handle.is_cancelled());
    1
}
