//! The bell wakes the driver from outside: a blocked worker does not hold up the timers of the
//! others. In real time, which is the point, with generous bounds.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;

use tokio::runtime::{Builder, Runtime};
use waterwheel::{Duration, Instant, Timer};

fn two_workers() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Notes when it was woken.
#[derive(Default)]
struct Note(Mutex<Option<Instant>>);

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.0.lock().unwrap().get_or_insert_with(Instant::now);
    }
}

/// How late a timer is that is armed, as the earliest of all, by a task that then blocks its
/// worker without coming back to the scheduler. Another worker is free.
async fn lateness_beside_a_blocked_worker(timer: Timer, blocked: Duration) -> Duration {
    let note = Arc::new(Note::default());
    let waker = Waker::from(Arc::clone(&note));
    let deadline = Instant::now() + Duration::from_millis(50);
    let blocker = tokio::spawn(async move {
        let mut sleep = timer.sleep_until(deadline);
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut sleep).poll(&mut context).is_pending());
        thread::sleep(blocked);
        drop(sleep);
    });
    blocker.await.unwrap();
    let woken = note.0.lock().unwrap().take();
    woken.map_or(blocked, |woken| woken.duration_since(deadline))
}

// A slow handler or one blocked worker delays everyone (netty#11724, tokio#4730). The driver is
// not in the slot of the worker that armed the timer, where nobody else could take it.
#[test]
fn a_worker_that_blocks_after_arming_does_not_hold_up_the_timer() {
    let blocked = Duration::from_millis(600);
    for _ in 0..3 {
        let late = two_workers().block_on(async {
            let timer = Timer::builder().start().unwrap();
            // The driver is asleep, not yet to be polled for the first time.
            timer.sleep(Duration::from_millis(5)).await;
            lateness_beside_a_blocked_worker(timer, blocked).await
        });
        assert!(late < blocked / 3, "{late:?} late");
    }
}

// A task that wakes from a sleep and then blocks its worker holds up tokio's own timers until it
// is done, here for 560 ms.
#[test]
fn a_worker_that_blocks_after_waking_does_not_hold_up_other_timers() {
    let blocked = Duration::from_millis(600);
    let late = two_workers().block_on(async {
        let start = Instant::now();
        tokio::spawn(async move {
            waterwheel::sleep_until(start + Duration::from_millis(20)).await;
            thread::sleep(blocked);
        });
        let deadline = start + Duration::from_millis(60);
        let beside = tokio::spawn(async move {
            waterwheel::sleep_until(deadline).await;
            deadline.elapsed()
        });
        beside.await.unwrap()
    });
    assert!(late < blocked / 3, "{late:?} late");
}

#[test]
fn timers_fire_without_the_bell() {
    two_workers().block_on(async {
        let timer = Timer::builder().bell(false).start().unwrap();
        for millis in [0, 1, 5, 20] {
            let start = Instant::now();
            timer.sleep(Duration::from_millis(millis)).await;
            assert!(start.elapsed() >= Duration::from_millis(millis));
        }
        // Armed while the driver sleeps towards a later one.
        let later = tokio::spawn(timer.sleep(Duration::from_secs(3600)));
        tokio::task::yield_now().await;
        timer.sleep(Duration::from_millis(5)).await;
        later.abort();
        assert_eq!(timer.metrics().fired(), 4);
    });
}

/// How many threads of the bell there are now; `None` where the system does not tell.
fn bells() -> Option<usize> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    Some(
        names
            .filter(|name| name.trim() == "waterwheel-bell")
            .count(),
    )
}

#[test]
fn there_is_one_bell_for_all_timers() {
    let runtimes: Vec<Runtime> = (0..3).map(|_| two_workers()).collect();
    for runtime in &runtimes {
        runtime.block_on(async { waterwheel::sleep(Duration::from_millis(2)).await });
        runtime.block_on(async {
            let timer = Timer::builder().start().unwrap();
            timer.sleep(Duration::from_millis(2)).await;
        });
    }
    if let Some(bells) = bells() {
        assert_eq!(bells, 1);
    }
}
