//! Wakers that act on the timer that wakes or drops them.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::thread;

use waterwheel::{Duration, Instant, Sleep, Timer};

use crate::support::{
    HOUR, LIMIT, armed, current_thread, metrics, ms, multi_thread, own_timer, paused, poll_giving,
    poll_once, unless_over, waiting, waiting_with, waker_on_drop, waker_on_wake, with_timer,
    with_timer_within, within,
};

/// The timer and pending sleeps that the wakers act on.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) timer: Timer,
    others: Arc<Mutex<Vec<Sleep>>>,
}

impl Setup {
    fn others(&self) -> Vec<Sleep> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *others)
    }

    fn keep(&self, sleeps: Vec<Sleep>) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.extend(sleeps);
    }

    fn arm(&self, delay: Duration) {
        if let Ok(mut sleep) = self.timer.try_sleep(delay) {
            let _ = poll_once(&mut sleep);
            self.keep(vec![sleep]);
        }
    }

    fn reset_others(&self, to: impl Fn(Instant) -> Instant) {
        let mut others = self.others();
        for sleep in &mut others {
            sleep.set_deadline(to(sleep.deadline()));
            let _ = poll_once(sleep);
        }
        self.keep(others);
    }
}

pub(crate) type Act = fn(&Setup);

/// The actions of a waker on its own timer.
pub(crate) const ACTS: &[(&str, Act)] = &[
    ("drop others", |setup| drop(setup.others())),
    ("arm", |setup| setup.arm(HOUR)),
    ("arm earlier than all", |setup| setup.arm(ms(1))),
    ("arm what is due at once", |setup| {
        setup.arm(Duration::from_nanos(1));
    }),
    ("postpone others", |setup| {
        setup.reset_others(|at| at + HOUR);
    }),
    ("reset others to earlier", |setup| {
        setup.reset_others(|at| at - ms(1));
    }),
    ("reset others to the past", |setup| {
        setup.reset_others(|at| at - HOUR * 2);
    }),
    ("shut down", |setup| {
        setup.timer.shutdown();
    }),
    ("drain", |setup| {
        let mut drained = Box::pin(setup.timer.drain());
        let _ = poll_once(&mut drained);
    }),
    ("read the metrics", |setup| {
        metrics(&setup.timer);
    }),
];

pub(crate) type Occasion = fn(&Setup, Waker) -> Option<Sleep>;

fn armed_with(setup: &Setup, delay: Duration, waker: Waker) -> Sleep {
    waiting_with(setup.timer.sleep(delay), waker)
}

/// The occasions on which a waker's code runs. The driver runs after each of these.
const OCCASIONS: &[(&str, Occasion)] = &[
    ("it is due", |setup, waker| {
        Some(armed_with(setup, ms(2), waker))
    }),
    ("its sleep is dropped", |setup, waker| {
        drop(armed_with(setup, HOUR, waker));
        None
    }),
    ("its sleep is polled with another waker", |setup, waker| {
        let mut sleep = armed_with(setup, HOUR, waker);
        let _ = poll_once(&mut sleep);
        Some(sleep)
    }),
    ("its sleep is reset to the past", |setup, waker| {
        let mut sleep = armed_with(setup, HOUR, waker);
        sleep.set_deadline(Instant::now() - ms(1));
        Some(sleep)
    }),
    ("its sleep is postponed, then polled", |setup, waker| {
        let mut sleep = armed_with(setup, ms(2), waker);
        sleep.set_deadline(sleep.deadline() + ms(2));
        let _ = poll_once(&mut sleep);
        Some(sleep)
    }),
    ("its timer is shut down", |setup, waker| {
        let sleep = armed_with(setup, HOUR, waker);
        setup.timer.shutdown();
        Some(sleep)
    }),
    ("its timer is drained", |setup, waker| {
        let sleep = armed_with(setup, HOUR, Waker::noop().clone());
        let mut drained = Box::pin(setup.timer.drain());
        let _ = poll_giving(&mut drained, waker);
        drop(setup.others());
        drop(sleep);
        let _ = poll_once(&mut drained);
        None
    }),
];

/// Runs every act on every occasion. A deadlock is a failure.
fn act_on_every_occasion(waker: fn(Setup, Act) -> Waker) {
    for &act in ACTS {
        for &occasion in OCCASIONS {
            act_on_occasion(waker, act, occasion);
        }
    }
}

/// Sets up a timer, and lets a waker act on it on an occasion, with a limit of time. After that the timer must work, or refuse
/// because it was stopped.
pub(crate) fn act_on_occasion(
    waker: fn(Setup, Act) -> Waker,
    (act_name, act): (&str, Act),
    (occasion_name, occasion): (&str, Occasion),
) {
    let act_out = move || {
        let runtime = paused();
        runtime.block_on(async {
            let timer = own_timer();
            let setup = Setup {
                timer: timer.clone(),
                others: Arc::default(),
            };
            for delay in [ms(2), ms(3), ms(1_500), HOUR] {
                setup.arm(delay);
            }
            let sleep = occasion(&setup, waker(setup.clone(), act));
            tokio::time::sleep(ms(5)).await;
            metrics(&setup.timer);
            drop(sleep);
            drop(setup.others());
            if let Ok(sleep) = setup.timer.try_sleep(ms(1)) {
                sleep.await;
            }
            metrics(&setup.timer);
        });
    };
    let done = catch_unwind(AssertUnwindSafe(|| within(LIMIT, act_out)));
    assert!(done.is_ok(), "{act_name} when {occasion_name}");
}

// tokio `drop_from_wake`, embassy#4978.
#[test]
fn a_waker_may_use_its_timer_when_it_is_woken() {
    act_on_every_occasion(|setup, act| waker_on_wake(move || act(&setup)));
}

// tokio `drop_from_waker_drop`.
#[test]
fn a_waker_may_use_its_timer_when_it_is_dropped() {
    act_on_every_occasion(|setup, act| waker_on_drop(move || act(&setup)));
}

#[test]
fn a_waker_may_use_its_timer_while_its_runtime_is_dropped() {
    for &(_, act) in ACTS {
        for woken in [true, false] {
            within(LIMIT, move || {
                let (runtime, timer) = with_timer(multi_thread(1));
                let setup = Setup {
                    timer: timer.clone(),
                    others: Arc::default(),
                };
                setup.arm(HOUR);
                let its = setup.clone();
                let act = move || {
                    let _ = unless_over(|| act(&its));
                };
                let waker = if woken {
                    waker_on_wake(act)
                } else {
                    waker_on_drop(act)
                };
                let mut sleep = armed_with(&setup, HOUR, waker);
                drop(runtime);
                // A shutdown is among the acts.
                let poll = unless_over(|| poll_once(&mut sleep));
                assert_eq!(poll.is_some(), sleep.was_stopped());
                assert_eq!(metrics(&setup.timer).pending(), 0);
            });
        }
    }
}

// folly 09a84b282, libuv#4245: a timer that is armed inside a wake with no delay fires in the same turn, again and again.
#[tokio::test(start_paused = true)]
async fn a_waker_that_arms_again_with_no_delay_holds_nothing_up() {
    fn again(timer: Timer, kept: Arc<Mutex<Vec<Sleep>>>, count: Arc<AtomicUsize>) -> Waker {
        waker_on_wake(move || {
            count.fetch_add(1, Ordering::SeqCst);
            let Ok(mut sleep) = timer.try_sleep(Duration::from_nanos(1)) else {
                return;
            };
            let next = again(timer.clone(), Arc::clone(&kept), Arc::clone(&count));
            let _ = poll_giving(&mut sleep, next);
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(sleep);
        })
    }
    let timer = own_timer();
    let (kept, count) = (Arc::default(), Arc::default());
    let first = again(timer.clone(), Arc::clone(&kept), Arc::clone(&count));
    let _sleep = waiting_with(timer.sleep(ms(1)), first);
    let start = Instant::now();
    timer.sleep(ms(50)).await;
    assert_eq!(start.elapsed(), ms(50));
    // One round per tick.
    let rounds = count.load(Ordering::SeqCst);
    assert!((40..=60).contains(&rounds), "{rounds} rounds");
    timer.shutdown();
}

#[test]
fn wakers_that_arm_while_the_driver_is_late_do_not_pile_up() {
    with_timer_within(current_thread(), |runtime, timer| {
        let deepest = Arc::new(AtomicUsize::new(0));
        thread_local! {
            static DEPTH: RefCell<usize> = const { RefCell::new(0) };
        }
        let kept: Arc<Mutex<Vec<Sleep>>> = Arc::default();
        let mut sleeps: Vec<_> = (0..2_000).map(|_| timer.sleep(ms(2))).collect();
        for sleep in &mut sleeps {
            let (timer, kept) = (timer.clone(), Arc::clone(&kept));
            let deepest = Arc::clone(&deepest);
            let waker = waker_on_wake(move || {
                let depth = DEPTH.with_borrow_mut(|depth| {
                    *depth += 1;
                    *depth
                });
                deepest.fetch_max(depth, Ordering::SeqCst);
                let mut next = timer.sleep(ms(1));
                let _ = poll_once(&mut next);
                kept.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(next);
                DEPTH.with_borrow_mut(|depth| *depth -= 1);
            });
            let _ = poll_giving(sleep, waker);
        }
        // No thread drives the runtime meanwhile.
        for _ in 0..20 {
            thread::sleep(ms(3));
            let _another = waiting(timer.sleep(HOUR));
            metrics(&timer);
        }
        runtime.block_on(timer.sleep(ms(2)));
        assert!(deepest.load(Ordering::SeqCst) < 50);
        metrics(&timer);
    });
}

// A poll that arms spawns a catch-up if the driver is late. It does not run other tasks' wakers itself: the polling task may hold a
// lock that one of these wakers needs.
#[test]
fn a_poll_that_arms_wakes_no_other_task_on_the_spot() {
    let (runtime, timer) = with_timer(current_thread());
    let lock = Arc::new(Mutex::new(()));
    let is_within = Arc::new(AtomicUsize::new(0));
    let waker = waker_on_wake({
        let (lock, is_within) = (Arc::clone(&lock), Arc::clone(&is_within));
        move || {
            is_within.fetch_add(usize::from(lock.try_lock().is_err()), Ordering::SeqCst);
        }
    });
    let _due = armed(&timer, ms(50), |nap| poll_giving(nap, waker.clone()));
    // A real sleep, since no thread drives the runtime.
    thread::sleep(ms(60));
    let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
    let _armed = waiting(timer.sleep(HOUR));
    drop(guard);
    // The poll has spawned a task that serves a batch for the driver. It runs here.
    runtime.block_on(tokio::task::yield_now());
    assert_eq!(metrics(&timer).fired(), 1);
    assert_eq!(is_within.load(Ordering::SeqCst), 0);
}
