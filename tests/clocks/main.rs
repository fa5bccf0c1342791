//! Sleeps by the wall clock and by the time since boot, deliberately in real time. The effect of setting the clock is tested in
//! `src/clocks/waiting`, on a clock that can be set.

#[path = "../support/mod.rs"]
mod support;

use std::fmt::Debug;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use cooked_waker::{IntoWaker, Wake, WakeRef};
use tokio::runtime::Builder;
use waterwheel::clocks::{SleepBoot, SleepUntilWall, sleep_boot, sleep_until_wall};

use support::{LIMIT, Probe, eventually, ms, poll_once, poll_with, waiting, waker_on_wake, within};

/// The common traits of both kinds of sleep.
trait Waits: Future<Output = ()> + Unpin + Debug + Send + Sync + 'static {}

impl Waits for SleepUntilWall {}
impl Waits for SleepBoot {}

/// Calls `act` with a constructor of each kind.
fn of_both_kinds(act: impl Fn(&dyn Fn(Duration) -> Box<dyn Waits>)) {
    act(&|delay| Box::new(sleep_until_wall(SystemTime::now() + delay)));
    act(&|delay| Box::new(sleep_boot(delay)));
}

/// Waits on a runtime without time, so that tokio's timers are not involved.
fn block_on<F: Future>(future: F) -> F::Output {
    Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

#[test]
fn none_is_early() {
    for delay in [0, 1, 7, 30].map(ms) {
        let deadline = SystemTime::now() + delay;
        block_on(sleep_until_wall(deadline));
        assert!(SystemTime::now() >= deadline);
        let begun = Instant::now();
        block_on(sleep_boot(delay));
        assert!(begun.elapsed() >= delay);
    }
}

#[test]
fn each_is_woken_once_and_lets_its_waker_go() {
    of_both_kinds(|make| {
        let probe = Probe::new();
        let mut sleep = probe.waiting(make(ms(20)));
        assert_eq!((probe.wakes(), probe.held()), (0, 1));
        eventually("it is woken", || probe.wakes() == 1);
        eventually("the waker is let go", || probe.held() == 0);
        assert!(probe.poll(&mut sleep).is_ready());
        assert!(probe.poll(&mut sleep).is_ready());
        assert_eq!(probe.wakes(), 1);
    });
}

#[test]
fn the_last_waker_is_woken() {
    of_both_kinds(|make| {
        let [first, last] = [Probe::new(), Probe::new()];
        let mut sleep = first.waiting(make(ms(20)));
        assert!(last.poll(&mut sleep).is_pending());
        assert_eq!((first.held(), last.held()), (0, 1));
        eventually("the last is woken", || last.wakes() == 1);
        assert_eq!(first.wakes(), 0);
    });
}

#[test]
fn a_dropped_one_wakes_none_and_keeps_none_from_waking() {
    of_both_kinds(|make| {
        let [dropped, kept] = [Probe::new(), Probe::new()];
        let mut first = make(ms(10));
        let mut second = make(ms(30));
        assert!(dropped.poll(&mut first).is_pending());
        assert!(kept.poll(&mut second).is_pending());
        drop(first);
        assert_eq!(dropped.held(), 0);
        eventually("the other is woken", || kept.wakes() == 1);
        assert_eq!(dropped.wakes(), 0);
    });
}

// The thread waits for the later sleep, and must be told about the earlier one.
#[test]
fn an_earlier_one_wakes_the_thread() {
    of_both_kinds(|make| {
        let [late, early] = [Probe::new(), Probe::new()];
        let _first = late.waiting(make(Duration::from_secs(3_600)));
        let _second = early.waiting(make(ms(20)));
        eventually("the earlier is woken", || early.wakes() == 1);
        assert_eq!(late.wakes(), 0);
    });
}

#[test]
fn they_are_woken_in_order_of_deadline() {
    of_both_kinds(|make| {
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut sleeps = Vec::new();
        for delay in [40, 20, 30] {
            let log = Arc::clone(&woken);
            let waker = waker_on_wake(move || log.lock().unwrap().push(delay));
            let mut sleep = make(ms(delay));
            let is_late = poll_with(&mut sleep, &waker).is_ready();
            assert!(!is_late, "this machine stood still for {delay} ms");
            sleeps.push(sleep);
        }
        eventually("all are woken", || woken.lock().unwrap().len() == 3);
        assert_eq!(*woken.lock().unwrap(), [20, 30, 40]);
    });
}

// Foreign code runs without the lock.
#[test]
fn a_waker_may_use_the_clocks_it_is_woken_by() {
    within(LIMIT, || {
        of_both_kinds(|make| {
            let other = waiting(make(Duration::from_secs(3_600)));
            let other = Mutex::new(Some(other));
            let done = Arc::new(Mutex::new(0));
            let count = Arc::clone(&done);
            let waker = waker_on_wake(move || {
                drop(other.lock().unwrap().take());
                let _again = waiting(sleep_boot(Duration::from_secs(3_600)));
                *count.lock().unwrap() += 1;
            });
            let mut sleep = make(ms(5));
            let _ = poll_with(&mut sleep, &waker);
            eventually("the waker has done it", || *done.lock().unwrap() == 1);
        });
    });
}

// Cloning is foreign code as well, which a poll with another waker needs.
#[test]
fn a_waker_may_use_the_clocks_as_it_is_cloned() {
    #[derive(Default)]
    struct Uses(Arc<Mutex<u32>>);
    impl Clone for Uses {
        fn clone(&self) -> Uses {
            let _other = waiting(sleep_boot(Duration::from_secs(3_600)));
            *self.0.lock().unwrap() += 1;
            Uses(Arc::clone(&self.0))
        }
    }
    impl WakeRef for Uses {
        fn wake_by_ref(&self) {}
    }
    impl Wake for Uses {}
    within(LIMIT, || {
        of_both_kinds(|make| {
            let uses = Uses::default();
            let clones = Arc::clone(&uses.0);
            let waker = Box::new(uses).into_waker();
            let mut sleep = make(Duration::from_secs(3_600));
            assert!(poll_with(&mut sleep, &waker).is_pending());
            assert!(poll_once(&mut sleep).is_pending());
            assert!(poll_with(&mut sleep, &waker).is_pending());
            assert_eq!(*clones.lock().unwrap(), 2);
        });
    });
}

#[test]
fn any_deadline_is_taken() {
    let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
    let mut passed = sleep_until_wall(before);
    assert!(poll_once(&mut passed).is_ready());
    assert_eq!(passed.deadline(), before);
    let far = SystemTime::now() + Duration::from_secs(86_400 * 365 * 1_000);
    assert!(poll_once(&mut sleep_until_wall(far)).is_pending());
    assert!(poll_once(&mut sleep_boot(Duration::MAX)).is_pending());
    assert!(poll_once(&mut sleep_boot(Duration::ZERO)).is_ready());
    // The thread still works after the panics.
    block_on(sleep_boot(ms(5)));
    assert!(!format!("{passed:?} {:?}", sleep_boot(ms(5))).is_empty());
}

#[test]
fn a_task_that_awaits_passed_ones_gives_way() {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let other = tokio::spawn(async {});
        let mut rounds = 0;
        while !other.is_finished() {
            sleep_boot(Duration::ZERO).await;
            rounds += 1;
            assert!(rounds < 100_000, "the other task does not run");
        }
    });
}

/// How often a thread of this process, identified by its name, has gone to sleep.
#[cfg(target_os = "linux")]
fn rests_of(thread: &str) -> u64 {
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let folder = task.unwrap().path();
        if std::fs::read_to_string(folder.join("comm")).is_ok_and(|name| name.trim() == thread) {
            let status = std::fs::read_to_string(folder.join("status")).unwrap();
            let mut lines = status.lines();
            let rests = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            return rests.unwrap().trim().parse().unwrap();
        }
    }
    panic!("no thread is called {thread}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_thread_does_not_tick() {
    // Runs in its own process: the other tests use the thread as well.
    support::alone(|| {
        let far = Duration::from_secs(3_600);
        let _waits: Vec<_> = (0..100).map(|_| waiting(sleep_boot(far))).collect();
        let _wall = waiting(sleep_until_wall(SystemTime::now() + far));
        // The thread has its name by then.
        block_on(sleep_boot(ms(5)));
        // The control: a due sleep wakes the thread.
        let before = rests_of("waterwheel-time");
        block_on(sleep_boot(ms(20)));
        eventually("it was woken", || rests_of("waterwheel-time") > before);
        let before = rests_of("waterwheel-time");
        std::thread::sleep(ms(300));
        let ticks = rests_of("waterwheel-time") - before;
        // The end of the control's wake-up may still be counted.
        assert!(ticks <= 1, "{ticks} wake-ups in 300 ms");
    });
}
