//! A herd that is only partly served when its runtime is dropped.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use tokio::runtime::Runtime;
use waterwheel::{Duration, Instant, Sleep, Timer, sleep, sleep_until};

use crate::support::{
    HOUR, Probe, inside, metrics, ms, multi_thread, poll_once, poll_with, waker_on_wake,
    with_timer, within,
};

const LIMIT: Duration = Duration::from_secs(300);
/// More than one turn serves, however late it is.
const HERD: u64 = 70_000;
const TASKS: u64 = 25_000;
/// A busy machine may take longer to arm a herd than there is time until it is due. Each round has twice
/// as much time as the previous one.
const ROUNDS: u32 = 8;

/// Armed before the herd and due with it. Its waker holds up the driver until the runtime is being
/// dropped, in the middle of the herd, however late this thread gets there.
struct Gate {
    nap: Sleep,
    reached: Receiver<()>,
}

impl Gate {
    fn arm(runtime: &Runtime, timer: &Timer, lead: Duration) -> Gate {
        struct End(Arc<AtomicBool>);
        impl Drop for End {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let is_ending = Arc::new(AtomicBool::new(false));
        // Dropped with the runtime, by the worker that is not blocked.
        let end = End(Arc::clone(&is_ending));
        runtime.spawn(async move {
            let _end = end;
            pending::<()>().await;
        });
        let (reach, reached) = channel();
        let waker = waker_on_wake(move || {
            let _ = reach.send(());
            while !is_ending.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        });
        let mut nap = timer.sleep(lead);
        while poll_with(&mut nap, &waker).is_ready() {
            nap.set_deadline(Instant::now() + lead);
        }
        Gate { nap, reached }
    }
}

#[test]
fn a_runtime_dropped_amid_a_herd_strands_no_waiter() {
    within(LIMIT, || {
        for round in 0..ROUNDS {
            let (runtime, timer) = with_timer(multi_thread(2));
            let probe = Probe::new();
            let waker = probe.waker();
            let mut gate = Gate::arm(&runtime, &timer, ms(300) * (1 << round));
            let deadline = gate.nap.deadline();
            let mut naps: Vec<Sleep> = (0..HERD).map(|_| timer.sleep_until(deadline)).collect();
            for nap in &mut naps {
                let _ = poll_with(nap, &waker);
            }
            let armed = metrics(&timer).armed();
            gate.reached.recv().expect("the herd is due");
            drop(runtime);
            // Each armed timer is woken once: it was fired or stopped.
            let metrics = metrics(&timer);
            assert_eq!(metrics.pending(), 0);
            assert_eq!(metrics.fired() + metrics.stopped(), armed);
            assert_eq!(probe.wakes() as u64, armed - 1, "all but the gate");
            drop(waker);
            assert_eq!(probe.held(), 0);
            assert!(naps.iter_mut().all(|nap| poll_once(nap).is_ready()));
            assert!(poll_once(&mut gate.nap).is_ready());
            drop(naps);
            if metrics.fired() > 0 && metrics.stopped() > 0 {
                return;
            }
        }
        panic!("no runtime was dropped in the middle");
    });
}

// Likewise with tasks: the driver wakes them while the runtime drops them.
#[test]
fn tasks_of_a_herd_dropped_with_their_runtime_leave_no_timer() {
    /// Counts the tasks that end. A panic, which tokio would catch, counts as none.
    struct Ends(Arc<AtomicU64>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0
                .fetch_add(u64::from(!thread::panicking()), Ordering::SeqCst);
        }
    }
    within(LIMIT, || {
        for round in 0..ROUNDS {
            let runtime = multi_thread(2);
            // The runtime's timer: tasks may still use it while their runtime ends.
            let timer = inside(&runtime, Timer::current);
            let (ended, awake) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let gate = Gate::arm(&runtime, &timer, ms(400) * (1 << round));
            let deadline = gate.nap.deadline();
            for _ in 0..TASKS {
                let awake = Arc::clone(&awake);
                let ends = Ends(Arc::clone(&ended));
                runtime.spawn(async move {
                    let _ends = ends;
                    sleep_until(deadline).await;
                    awake.fetch_add(1, Ordering::SeqCst);
                    // Waking all of them would take half a minute.
                    thread::sleep(ms(1));
                    sleep(HOUR).await;
                });
            }
            gate.reached.recv().expect("the herd is due");
            drop(runtime);
            drop(gate);
            assert_eq!(ended.load(Ordering::SeqCst), TASKS);
            let metrics = metrics(&timer);
            assert_eq!(metrics.pending(), 0);
            if metrics.armed() > TASKS / 2 && awake.load(Ordering::SeqCst) < TASKS {
                return;
            }
        }
        panic!("no runtime was dropped in the middle");
    });
}
