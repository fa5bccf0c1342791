//! tokio's timers and ours in one process: a service that switches has both, since its dependencies keep tokio's.

use std::future::Future;
use std::sync::{Arc, Mutex};

use waterwheel::{Duration, Instant, Timer};

use crate::support::{HOUR, ms, paused};

/// Milliseconds, with equal ones among them.
const DEADLINES: [u64; 8] = [30, 10, 20, 10, 40, 20, 10, 35];
/// Those of the other library, at and between them.
const OTHERS: [u64; 7] = [5, 10, 15, 20, 25, 30, 45];

/// Which sleeps completed, in order, and when.
type Wakes = Vec<(usize, Duration)>;

/// What there was to see of a run.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    wakes: Wakes,
    driver_turns: u64,
}

/// Runs sleeps of one library, `ours`, among sleeps of another, on a paused clock.
fn run<S, O>(sleep: fn(Duration) -> S, other: Option<fn(Duration) -> O>) -> Run
where
    S: Future<Output = ()> + Send + 'static,
    O: Future<Output = ()> + Send + 'static,
{
    let runtime = paused();
    runtime.block_on(async {
        let start = Instant::now();
        let wakes = Arc::new(Mutex::new(Wakes::new()));
        let mut tasks = Vec::new();
        for (index, deadline) in DEADLINES.into_iter().enumerate() {
            let wakes = Arc::clone(&wakes);
            let asleep = sleep(ms(deadline));
            tasks.push(tokio::spawn(async move {
                asleep.await;
                wakes
                    .lock()
                    .expect("no test has failed")
                    .push((index, start.elapsed()));
            }));
            if let (Some(other), Some(&deadline)) = (other, OTHERS.get(index)) {
                tasks.push(tokio::spawn(other(ms(deadline))));
            }
        }
        for task in tasks {
            task.await.expect("no panic");
        }
        let wakes = wakes.lock().expect("no test has failed").clone();
        Run {
            wakes,
            driver_turns: Timer::current().metrics().driver_turns(),
        }
    })
}

#[test]
fn tokios_timers_keep_their_order_beside_ours() {
    let alone = run(
        tokio::time::sleep,
        None::<fn(Duration) -> waterwheel::Sleep>,
    );
    let beside = run(tokio::time::sleep, Some(waterwheel::sleep));
    assert_eq!(alone.wakes.len(), DEADLINES.len());
    assert_eq!(alone.wakes, beside.wakes);
    assert!(beside.driver_turns > alone.driver_turns, "ours did fire");
}

#[test]
fn ours_keep_their_order_and_their_turns_beside_tokios() {
    let alone = run(
        waterwheel::sleep,
        None::<fn(Duration) -> tokio::time::Sleep>,
    );
    let beside = run(waterwheel::sleep, Some(tokio::time::sleep));
    assert_eq!(alone.wakes.len(), DEADLINES.len());
    assert_eq!(alone, beside);
}

// Work is counted and not timed: a worker that has nothing to do goes to rest once, and again each time it is woken.
#[test]
fn a_pending_timer_of_ours_adds_no_wake_up_to_tokios() {
    let rests = |is_beside: bool| {
        let runtime = paused();
        runtime.block_on(async {
            let pending: Vec<_> = (0..100)
                .filter(|_| is_beside)
                .map(|_| tokio::spawn(waterwheel::sleep(HOUR)))
                .collect();
            tokio::time::sleep(ms(1)).await;
            let metrics = tokio::runtime::Handle::current().metrics();
            let before = metrics.worker_park_count(0);
            for deadline in DEADLINES {
                tokio::time::sleep(ms(deadline)).await;
            }
            let rests = metrics.worker_park_count(0) - before;
            pending.iter().for_each(|task| task.abort());
            rests
        })
    };
    let alone = rests(false);
    assert!(alone >= DEADLINES.len() as u64);
    assert_eq!(alone, rests(true));
}
