//! More timers come due than the driver's turns serve: neither the oldest nor the freshest starve.
//!
//! `tests/wheel/fairness.rs` says it of the wheel; this is the real driver, with its bites. On a running clock: where
//! it is paused, time waits for the driver, which then serves in order.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use futures::task::AtomicWaker;
use waterwheel::{Duration, Instant, Sleep, Timer};

use crate::support::{metrics, ms, own_timer, poll_giving, waker_on_wake};

/// What is due before all that arrives.
const HERD: usize = 20_000;
/// How many timers each that is woken arms: more than one, so that ever more come due.
const ARRIVALS: usize = 2;
/// So long does each that is woken take: a turn, which wakes 128, takes longer than a tick.
const EACH: Duration = Duration::from_micros(20);
/// Turns of the driver that are looked at.
const STEPS: usize = 20;

struct Load {
    timer: Timer,
    sleeps: Mutex<Vec<Sleep>>,
    /// How many of the herd were woken.
    old: AtomicUsize,
    /// How many were woken of those that arrived in each step.
    arrived: Vec<AtomicUsize>,
    step: AtomicUsize,
    is_over: AtomicBool,
    watcher: AtomicWaker,
}

impl Load {
    fn new(timer: &Timer) -> Arc<Load> {
        Arc::new(Load {
            timer: timer.clone(),
            sleeps: Mutex::default(),
            old: AtomicUsize::new(0),
            arrived: (0..=STEPS).map(|_| AtomicUsize::new(0)).collect(),
            step: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            watcher: AtomicWaker::new(),
        })
    }

    /// Arms a timer that arrives in this step; one of the herd if that is `None`.
    fn arm(self: &Arc<Load>, step: Option<usize>, delay: Duration) {
        let load = Arc::clone(self);
        let waker = waker_on_wake(move || load.wake(step));
        let mut sleep = self.timer.sleep(delay);
        while poll_giving(&mut sleep, waker.clone()).is_ready() {
            // The thread was kept from running for so long.
            sleep = self.timer.sleep(delay);
        }
        self.sleeps.lock().unwrap().push(sleep);
    }

    fn wake(self: &Arc<Load>, step: Option<usize>) {
        let count = step.map_or(&self.old, |step| &self.arrived[step]);
        count.fetch_add(1, Ordering::SeqCst);
        self.watcher.wake();
        if self.is_over.load(Ordering::SeqCst) || self.timer.is_stopped() {
            return;
        }
        let now = self.step.load(Ordering::SeqCst);
        for _ in 0..ARRIVALS {
            self.arm(Some(now), ms(1));
        }
        let start = Instant::now();
        while start.elapsed() < EACH {
            std::hint::spin_loop();
        }
    }

    fn old(&self) -> usize {
        self.old.load(Ordering::SeqCst)
    }

    fn arrived(&self) -> Vec<usize> {
        let each = self.arrived.iter();
        each.map(|count| count.load(Ordering::SeqCst)).collect()
    }

    fn woken(&self) -> usize {
        self.old() + self.arrived().into_iter().sum::<usize>()
    }

    /// Waits for a turn that wakes something. On a runtime of one thread, a task that waits goes on
    /// after that turn and before the next.
    async fn next_turn(&self) {
        let before = self.woken();
        poll_fn(|context| {
            self.watcher.register(context.waker());
            match self.woken() == before {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }
}

#[tokio::test]
async fn under_a_steady_overload_neither_the_oldest_nor_the_freshest_starve() {
    // A driver that waits for long serves more in a turn. If the machine had it wait for so long that it
    // served the whole herd, there was no overload of it.
    for _ in 0..20 {
        // In a task, which takes its turns with the driver's; the test's own future comes every 61st time.
        if tokio::spawn(overload()).await.expect("nobody starves") {
            return;
        }
    }
    panic!("the driver waited for long in each of twenty rounds");
}

/// Whether some of the herd were left in the end.
async fn overload() -> bool {
    let timer = own_timer();
    let load = Load::new(&timer);
    // Due at one tick, once all are armed.
    let due = Instant::now() + ms(400);
    for _ in 0..HERD {
        load.arm(
            None,
            due.saturating_duration_since(Instant::now()).max(ms(1)),
        );
    }
    // Until the first to arrive are due as well.
    while load.arrived()[0] == 0 {
        load.next_turn().await;
    }
    let start = metrics(&timer).pending();
    let (old_at_first, new_at_first) = (load.old(), load.arrived()[0]);
    for step in 1..=STEPS {
        load.step.store(step, Ordering::SeqCst);
        let before = (load.old(), load.arrived());
        load.next_turn().await;
        if load.old() == HERD {
            load.is_over.store(true, Ordering::SeqCst);
            return false;
        }
        assert!(load.old() > before.0, "none of the oldest in step {step}");
        // Those of this step may not be due yet.
        let freshest = step.saturating_sub(2)..=step;
        let woken = load.arrived()[freshest.clone()] != before.1[freshest];
        assert!(woken, "none of the freshest in step {step}");
    }
    assert!(metrics(&timer).pending() > start, "it was an overload");
    let old = load.old() - old_at_first;
    let new = load.arrived().into_iter().sum::<usize>() - new_at_first;
    assert!(
        old >= new / 2 && new >= old / 2,
        "{old} of the herd and {new} that came after it"
    );

    // What was left over is neither lost nor woken twice.
    load.is_over.store(true, Ordering::SeqCst);
    while metrics(&timer).pending() > 0 {
        load.next_turn().await;
    }
    assert_eq!(load.old(), HERD);
    let sleeps = std::mem::take(&mut *load.sleeps.lock().unwrap());
    assert_eq!(load.woken(), sleeps.len());
    true
}
