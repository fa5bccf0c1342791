//! tokio's timers and ours in one process: a service that switches uses both, since its dependencies keep tokio's.

use std::future::Future;
use std::sync::{Arc, Mutex};

use waterwheel::{Duration, Instant, Timer};

use crate::support::{HOUR, LIMIT, ms, multi_thread, paused, within};

/// Deadlines in milliseconds, some of them equal.
const DEADLINES: [u64; 8] = [30, 10, 20, 10, 40, 20, 10, 35];
/// Deadlines of the other library, at and between those above.
const OTHERS: [u64; 7] = [5, 10, 15, 20, 25, 30, 45];

/// The sleeps that completed, in order, with their times.
type Wakes = Vec<(usize, Duration)>;

/// The observations of a run.
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

// Counts work instead of time: an idle worker goes to rest once, and again each time it is woken.
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

/// Our timers next to tokio's sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ours {
    None,
    /// A hundred sleeps that wait for an hour, and one more around each of tokio's sleeps.
    Pending,
    /// A sleep that comes due after each of tokio's sleeps.
    Due,
}

const SLEEPS: u64 = 50;

/// How often the workers of a runtime go to rest during this many consecutive sleeps of tokio's.
fn rests_in_real_time(ours: Ours) -> u64 {
    const WORKERS: usize = 2;
    let runtime = multi_thread(WORKERS);
    let metrics = runtime.metrics();
    let rests = move || {
        (0..WORKERS)
            .map(|worker| metrics.worker_park_count(worker))
            .sum::<u64>()
    };
    let sleeping = runtime.spawn(async move {
        if ours == Ours::Pending {
            for _ in 0..100 {
                tokio::spawn(waterwheel::sleep(HOUR));
            }
            while Timer::current().metrics().pending() < 100 {
                tokio::task::yield_now().await;
            }
        }
        // Workers that arming them has woken go to rest again.
        tokio::time::sleep(ms(10)).await;
        let before = rests();
        for _ in 0..SLEEPS {
            let sleep = tokio::time::sleep(ms(4));
            match ours {
                Ours::Pending => waterwheel::timeout(HOUR, sleep).await.expect("in time"),
                Ours::None | Ours::Due => sleep.await,
            }
            if ours == Ours::Due {
                waterwheel::sleep(ms(4)).await;
            }
        }
        rests() - before
    });
    runtime.block_on(sleeping).expect("no panic")
}

// A worker that wakes for a sleep of tokio's also wakes the other one, which finds nothing: two rests a sleep, and a few more where tokio's timers
// cascade. These counts do not depend on time, so a busy machine has as many. One more wake-up per sleep would be two more rests.
#[test]
fn pending_timers_of_ours_add_no_wake_up_on_several_workers() {
    within(LIMIT, || {
        let [alone, beside, more] = [Ours::None, Ours::Pending, Ours::Due].map(rests_in_real_time);
        let seen = format!("{alone} alone, {beside} beside ours, {more} with one of ours due each");
        assert!(beside < alone + SLEEPS / 2, "{seen}");
        assert!(more > alone + SLEEPS / 2, "not counted: {seen}");
    });
}
