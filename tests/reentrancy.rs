//! Wakers run code that is not ours: it may use the timer that calls it, and it may panic.
//!
//! Not here: wakers that act or panic when they are *cloned*. Safe code cannot make one (a clone
//! of an `Arc` runs none), and this crate has no `unsafe`, in its tests neither.

mod support;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::thread;

use support::{
    HOUR, Probe, alone, current_thread, eventually, inside, metrics, ms, multi_thread, own_timer,
    poll_giving, poll_once, waker_on_drop, waker_on_wake, within,
};
use tokio::runtime::Builder;
use waterwheel::{Duration, Instant, Sleep, Timer, sleep};

const LIMIT: Duration = Duration::from_secs(20);

// ----- wakers that act on the timer that wakes or drops them -----

/// What the wakers act on: a timer, and some of its sleeps that are pending.
#[derive(Clone)]
struct Stage {
    timer: Timer,
    others: Arc<Mutex<Vec<Sleep>>>,
}

impl Stage {
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

type Act = fn(&Stage);

/// What a waker may do to its own timer.
const ACTS: &[(&str, Act)] = &[
    ("drop others", |stage| drop(stage.others())),
    ("arm", |stage| stage.arm(HOUR)),
    ("arm earlier than all", |stage| stage.arm(ms(1))),
    ("arm what is due at once", |stage| {
        stage.arm(Duration::from_nanos(1));
    }),
    ("postpone others", |stage| {
        stage.reset_others(|at| at + HOUR);
    }),
    ("hasten others", |stage| stage.reset_others(|at| at - ms(1))),
    ("reset others to the past", |stage| {
        stage.reset_others(|at| at - HOUR * 2);
    }),
    ("shut down", |stage| {
        stage.timer.shutdown();
    }),
    ("drain", |stage| {
        let mut drained = Box::pin(stage.timer.drain());
        let _ = poll_once(&mut drained);
    }),
    ("read the metrics", |stage| {
        metrics(&stage.timer);
    }),
];

type Occasion = fn(&Stage, Waker) -> Option<Sleep>;

fn armed_with(stage: &Stage, delay: Duration, waker: Waker) -> Sleep {
    let mut sleep = stage.timer.sleep(delay);
    assert!(poll_giving(&mut sleep, waker).is_pending());
    sleep
}

/// When a waker's code runs; the driver does what is left to do.
const OCCASIONS: &[(&str, Occasion)] = &[
    ("it is due", |stage, waker| {
        Some(armed_with(stage, ms(2), waker))
    }),
    ("its sleep is dropped", |stage, waker| {
        drop(armed_with(stage, HOUR, waker));
        None
    }),
    ("its sleep is polled with another waker", |stage, waker| {
        let mut sleep = armed_with(stage, HOUR, waker);
        let _ = poll_once(&mut sleep);
        Some(sleep)
    }),
    ("its sleep is reset to the past", |stage, waker| {
        let mut sleep = armed_with(stage, HOUR, waker);
        sleep.set_deadline(Instant::now() - ms(1));
        Some(sleep)
    }),
    ("its sleep is postponed, then polled", |stage, waker| {
        let mut sleep = armed_with(stage, ms(2), waker);
        sleep.set_deadline(sleep.deadline() + ms(2));
        let _ = poll_once(&mut sleep);
        Some(sleep)
    }),
    ("its timer is shut down", |stage, waker| {
        let sleep = armed_with(stage, HOUR, waker);
        stage.timer.shutdown();
        Some(sleep)
    }),
    ("its timer is drained", |stage, waker| {
        let sleep = armed_with(stage, HOUR, Waker::noop().clone());
        let mut drained = Box::pin(stage.timer.drain());
        let _ = poll_giving(&mut drained, waker);
        drop(stage.others());
        drop(sleep);
        let _ = poll_once(&mut drained);
        None
    }),
];

/// Every act on every occasion, each with a limit of time: a deadlock is a failure.
fn act_on_every_occasion(waker: fn(Stage, Act) -> Waker) {
    for &(act_name, act) in ACTS {
        for &(occasion_name, occasion) in OCCASIONS {
            let case = format!("{act_name} when {occasion_name}");
            let act_out = move || {
                let runtime = Builder::new_current_thread()
                    .enable_time()
                    .start_paused(true)
                    .build()
                    .expect("a runtime");
                runtime.block_on(async {
                    let stage = Stage {
                        timer: own_timer(),
                        others: Arc::default(),
                    };
                    for delay in [ms(2), ms(3), ms(1_500), HOUR] {
                        stage.arm(delay);
                    }
                    let sleep = occasion(&stage, waker(stage.clone(), act));
                    tokio::time::sleep(ms(5)).await;
                    metrics(&stage.timer);
                    drop(sleep);
                    drop(stage.others());
                    // The timer works on, or was stopped and says so.
                    if let Ok(sleep) = stage.timer.try_sleep(ms(1)) {
                        sleep.await;
                    }
                    metrics(&stage.timer);
                });
            };
            let done = catch_unwind(AssertUnwindSafe(|| within(LIMIT, act_out)));
            assert!(done.is_ok(), "{case}");
        }
    }
}

// tokio `drop_from_wake`, embassy#4978.
#[test]
fn a_waker_may_use_its_timer_when_it_is_woken() {
    act_on_every_occasion(|stage, act| waker_on_wake(move || act(&stage)));
}

// tokio `drop_from_waker_drop`.
#[test]
fn a_waker_may_use_its_timer_when_it_is_dropped() {
    act_on_every_occasion(|stage, act| waker_on_drop(move || act(&stage)));
}

#[test]
fn a_waker_may_use_its_timer_while_its_runtime_is_dropped() {
    for &(_, act) in ACTS {
        for woken in [true, false] {
            within(LIMIT, move || {
                let runtime = multi_thread(1);
                let stage = Stage {
                    timer: inside(&runtime, own_timer),
                    others: Arc::default(),
                };
                stage.arm(HOUR);
                let its = stage.clone();
                let waker = if woken {
                    waker_on_wake(move || act(&its))
                } else {
                    waker_on_drop(move || act(&its))
                };
                let mut sleep = armed_with(&stage, HOUR, waker);
                drop(runtime);
                assert!(poll_once(&mut sleep).is_ready());
                assert_eq!(metrics(&stage.timer).pending(), 0);
            });
        }
    }
}

// folly 09a84b282, libuv#4245: armed from inside a wake with no delay, it fires for ever.
#[tokio::test(start_paused = true)]
async fn a_waker_that_arms_again_with_no_delay_holds_up_nobody() {
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
    let mut sleep = timer.sleep(ms(1));
    assert!(poll_giving(&mut sleep, first).is_pending());
    let start = Instant::now();
    timer.sleep(ms(50)).await;
    assert_eq!(start.elapsed(), ms(50));
    // One round a tick.
    let rounds = count.load(Ordering::SeqCst);
    assert!((40..=60).contains(&rounds), "{rounds} rounds");
    timer.shutdown();
}

#[test]
fn wakers_that_arm_while_the_driver_is_late_do_not_pile_up() {
    within(LIMIT, || {
        let runtime = current_thread();
        let timer = inside(&runtime, own_timer);
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
        // Nobody drives the runtime meanwhile.
        for _ in 0..20 {
            thread::sleep(ms(3));
            let mut another = timer.sleep(HOUR);
            assert!(poll_once(&mut another).is_pending());
            metrics(&timer);
        }
        runtime.block_on(timer.sleep(ms(2)));
        assert!(deepest.load(Ordering::SeqCst) < 50);
        metrics(&timer);
    });
}

// ----- wakers that panic -----

fn panics_when_woken() -> Waker {
    waker_on_wake(|| panic!("a waker that panics when it is woken, on purpose"))
}

fn panics_when_dropped() -> Waker {
    waker_on_drop(|| panic!("a waker that panics when it is dropped, on purpose"))
}

/// What has panicked may have been meant to.
fn let_panic<R>(act: impl FnOnce() -> R) {
    let _ = catch_unwind(AssertUnwindSafe(act));
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_strands_nobody_and_the_driver_goes_on() {
    for panics in [panics_when_woken, panics_when_dropped] {
        let timer = own_timer();
        let probe = Probe::new();
        let mut sleeps: Vec<_> = (0..600).map(|n| timer.sleep(ms(5 + n % 2))).collect();
        for (n, sleep) in sleeps.iter_mut().enumerate() {
            let pending = if n % 3 == 0 {
                poll_giving(sleep, panics())
            } else {
                probe.poll(sleep)
            };
            assert!(pending.is_pending());
        }
        tokio::time::sleep(ms(10)).await;
        assert_eq!((probe.wakes(), probe.held()), (400, 0));
        assert!(sleeps.iter_mut().all(|sleep| poll_once(sleep).is_ready()));
        assert_eq!(metrics(&timer).fired(), 600);
        timer.sleep(ms(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_strands_nobody_at_a_shutdown() {
    for panics in [panics_when_woken, panics_when_dropped] {
        let timer = own_timer();
        let probe = Probe::new();
        let mut first = timer.sleep(ms(5));
        let mut sleeps: Vec<_> = (0..10).map(|_| timer.sleep(ms(5))).collect();
        assert!(poll_giving(&mut first, panics()).is_pending());
        assert!(
            sleeps
                .iter_mut()
                .all(|sleep| probe.poll(sleep).is_pending())
        );
        assert_eq!(timer.shutdown(), 11);
        assert_eq!(probe.wakes(), 10);
        metrics(&timer);
    }
}

#[test]
fn a_waker_that_panics_strands_nobody_when_its_runtime_is_dropped() {
    for panics in [panics_when_woken, panics_when_dropped] {
        let runtime = multi_thread(1);
        let timer = inside(&runtime, own_timer);
        let probe = Probe::new();
        let (mut first, mut second) = (timer.sleep(HOUR), timer.sleep(HOUR));
        assert!(poll_giving(&mut first, panics()).is_pending());
        assert!(probe.poll(&mut second).is_pending());
        drop(runtime);
        assert_eq!(probe.wakes(), 1);
        assert!(poll_once(&mut first).is_ready());
    }
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_when_it_is_replaced_leaves_the_sleep_and_the_timer_usable() {
    let timer = own_timer();
    let probe = Probe::new();
    let mut sleep = timer.sleep(ms(5));
    assert!(poll_giving(&mut sleep, panics_when_dropped()).is_pending());
    let_panic(|| probe.poll(&mut sleep));
    assert!(probe.poll(&mut sleep).is_pending());
    metrics(&timer);
    tokio::time::sleep(ms(6)).await;
    assert_eq!(probe.wakes(), 1);
    assert!(poll_once(&mut sleep).is_ready());
    metrics(&timer);
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_when_its_sleep_is_dropped_leaves_the_timer_usable() {
    let timer = own_timer();
    let mut sleep = timer.sleep(ms(5));
    assert!(poll_giving(&mut sleep, panics_when_dropped()).is_pending());
    let_panic(|| drop(sleep));
    let metrics_now = metrics(&timer);
    assert_eq!((metrics_now.cancelled(), metrics_now.pending()), (1, 0));
    timer.sleep(ms(5)).await;
    timer.drain().await;
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_when_its_sleep_is_reset_to_the_past_leaves_it_usable() {
    for panics in [panics_when_woken, panics_when_dropped] {
        let timer = own_timer();
        let mut sleep = timer.sleep(HOUR);
        assert!(poll_giving(&mut sleep, panics()).is_pending());
        let_panic(|| sleep.set_deadline(Instant::now() - ms(1)));
        metrics(&timer);
        assert!(poll_once(&mut sleep).is_ready());
        sleep.set_deadline(Instant::now() + ms(5));
        sleep.await;
        metrics(&timer);
    }
}

// A record that was given back may be somebody else's by now.
#[test]
fn a_waker_that_panics_when_its_sleep_completes_leaves_it_and_its_neighbours_usable() {
    alone(|| {
        let runtime = current_thread();
        let timer = inside(&runtime, own_timer);
        let mut sleep = timer.sleep(ms(3));
        assert!(poll_giving(&mut sleep, panics_when_dropped()).is_pending());
        // Past the deadline with nobody driving, so that it is the poll that completes it.
        thread::sleep(ms(6));
        let_panic(|| poll_once(&mut sleep));
        // Takes the place of the other.
        let mut neighbour = timer.sleep(ms(20));
        assert!(poll_once(&mut neighbour).is_pending());
        sleep.set_deadline(Instant::now() + HOUR);
        assert!(poll_once(&mut sleep).is_pending());
        runtime.block_on(&mut neighbour);
        assert!(poll_once(&mut sleep).is_pending());
        drop(sleep);
        let metrics = metrics(&timer);
        assert_eq!((metrics.cancelled(), metrics.pending()), (1, 0));
    });
}

#[test]
fn a_sleep_whose_waker_panicked_as_it_completed_may_be_dropped() {
    alone(|| {
        let runtime = current_thread();
        let timer = inside(&runtime, own_timer);
        let mut sleep = timer.sleep(ms(3));
        assert!(poll_giving(&mut sleep, panics_when_dropped()).is_pending());
        thread::sleep(ms(6));
        let_panic(|| poll_once(&mut sleep));
        drop(sleep);
        assert_eq!(metrics(&timer).pending(), 0);
    });
}

#[tokio::test(start_paused = true)]
async fn a_drain_whose_waker_panics_strands_nobody() {
    for panics in [panics_when_woken, panics_when_dropped] {
        let timer = own_timer();
        let mut last = timer.sleep(HOUR);
        assert!(poll_once(&mut last).is_pending());
        let (mut first, mut second) = (Box::pin(timer.drain()), Box::pin(timer.drain()));
        let probe = Probe::new();
        assert!(poll_giving(&mut first, panics()).is_pending());
        assert!(probe.poll(&mut second).is_pending());
        drop(last);
        assert!(probe.wakes() > 0);
        assert!(probe.poll(&mut second).is_ready());
    }
}

// ----- which waker, and how long it is kept -----

#[tokio::test(start_paused = true)]
async fn only_the_last_waker_polled_with_is_woken_and_once() {
    let probes = [Probe::new(), Probe::new(), Probe::new()];
    let mut sleep = sleep(ms(5));
    for probe in &probes {
        assert!(probe.poll(&mut sleep).is_pending());
    }
    assert_eq!(probes.each_ref().map(Probe::held), [0, 0, 1]);
    tokio::time::sleep(ms(20)).await;
    assert_eq!(probes.each_ref().map(Probe::wakes), [0, 0, 1]);
    assert!(poll_once(&mut sleep).is_ready());
    tokio::time::sleep(ms(20)).await;
    assert_eq!(probes.each_ref().map(Probe::wakes), [0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_waker_is_let_go_when_its_sleep_is_dropped() {
    let probe = Probe::new();
    let mut sleep = sleep(HOUR);
    assert!(probe.poll(&mut sleep).is_pending());
    assert_eq!(probe.held(), 1);
    drop(sleep);
    assert_eq!((probe.held(), probe.wakes()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_waker_is_let_go_when_its_sleep_fires() {
    let probe = Probe::new();
    let mut by_driver = sleep(ms(5));
    assert!(probe.poll(&mut by_driver).is_pending());
    tokio::time::sleep(ms(6)).await;
    assert_eq!(probe.held(), 0, "though it was not polled since");
    drop(by_driver);
    // By a poll that the driver has not come before.
    let mut by_poll = sleep(Duration::from_micros(1));
    assert!(probe.poll(&mut by_poll).is_pending());
    tokio::time::advance(Duration::from_micros(1)).await;
    let _ = probe.poll(&mut by_poll);
    assert_eq!(probe.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_wakers_of_a_drain_are_let_go_when_it_has_completed() {
    let timer = own_timer();
    let probe = Probe::new();
    let mut last = timer.sleep(HOUR);
    assert!(poll_once(&mut last).is_pending());
    let mut drained = Box::pin(timer.drain());
    for _ in 0..10 {
        assert!(probe.poll(&mut drained).is_pending());
        assert_eq!(probe.held(), 1, "one is enough");
    }
    drop(last);
    assert!(probe.poll(&mut drained).is_ready());
    assert_eq!(probe.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_sleep_that_is_cancelled_before_it_was_registered_leaves_nothing() {
    let timer = own_timer();
    for _ in 0..1_000 {
        drop(timer.sleep(HOUR));
        let mut reset = timer.sleep(HOUR);
        reset.set_deadline(Instant::now() + HOUR * 2);
        drop(reset);
        drop(timer.interval(HOUR));
        drop(timer.timeout(HOUR, std::future::pending::<()>()));
    }
    let metrics = metrics(&timer);
    let counts = (metrics.armed(), metrics.cancelled(), metrics.pending());
    assert_eq!(counts, (0, 0, 0));
    assert_eq!(timer.shutdown(), 0);
}

// ----- futures that end in strange places -----

#[tokio::test(start_paused = true)]
async fn a_sleep_that_is_forgotten_still_wakes_and_holds_up_nobody() {
    let timer = own_timer();
    let probe = Probe::new();
    let mut forgotten = timer.sleep(ms(5));
    assert!(probe.poll(&mut forgotten).is_pending());
    std::mem::forget(forgotten);
    std::mem::forget(timer.sleep(ms(5)));
    timer.sleep(ms(10)).await;
    assert_eq!((probe.wakes(), probe.held()), (1, 0));
    assert_eq!(metrics(&timer).pending(), 0);
    let mut second = timer.sleep(HOUR);
    assert!(probe.poll(&mut second).is_pending());
    std::mem::forget(second);
    assert_eq!(timer.shutdown(), 1);
    assert_eq!(probe.wakes(), 2);
}

// Panicking there aborts the process.
#[test]
fn a_sleep_may_be_dropped_in_the_destructor_of_a_thread_local() {
    alone(|| {
        thread_local! {
            static KEPT: RefCell<Vec<Sleep>> = const { RefCell::new(Vec::new()) };
        }
        let runtime = multi_thread(1);
        let paused = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let paused = paused.expect("a runtime");
        let timer = inside(&runtime, own_timer);
        let warped = inside(&paused, own_timer);
        let handle = runtime.handle().clone();
        // Both orders in which a thread's locals may be made, and so destroyed.
        for kept_first in [true, false] {
            let (timer, warped, handle) = (timer.clone(), warped.clone(), handle.clone());
            let ends = thread::spawn(move || {
                if kept_first {
                    KEPT.with_borrow_mut(Vec::clear);
                }
                let _entered = handle.enter();
                let mut sleeps = vec![sleep(HOUR), timer.sleep(HOUR), warped.sleep(HOUR)];
                assert!(sleeps.iter_mut().all(|sleep| poll_once(sleep).is_pending()));
                // And some that were not polled.
                sleeps.extend([sleep(HOUR), timer.sleep(HOUR), warped.sleep(HOUR)]);
                KEPT.with_borrow_mut(|kept| kept.append(&mut sleeps));
            });
            ends.join().expect("it does not panic");
        }
        for timer in [timer, warped, inside(&runtime, Timer::current)] {
            let metrics = metrics(&timer);
            assert_eq!((metrics.cancelled(), metrics.pending()), (2, 0));
        }
    });
}

#[test]
fn a_sleep_of_a_dropped_runtime_may_be_dropped_in_the_destructor_of_a_thread_local() {
    alone(|| {
        thread_local! {
            static KEPT: RefCell<Option<(Sleep, Timer)>> = const { RefCell::new(None) };
        }
        let ends = thread::spawn(|| {
            let runtime = current_thread();
            let mut last = inside(&runtime, || sleep(HOUR));
            assert!(poll_once(&mut last).is_pending());
            KEPT.set(Some((last, inside(&runtime, Timer::current))));
            drop(runtime);
        });
        ends.join().expect("it does not panic");
    });
}

#[test]
fn a_sleep_may_be_dropped_while_its_thread_unwinds() {
    alone(|| {
        let runtime = multi_thread(1);
        let timer = inside(&runtime, own_timer);
        let locked = Arc::new(Mutex::new(()));
        let unwinds = thread::spawn({
            let (timer, locked) = (timer.clone(), Arc::clone(&locked));
            move || {
                let _guard = locked.lock();
                let mut polled = timer.sleep(HOUR);
                assert!(poll_once(&mut polled).is_pending());
                let _unpolled = timer.sleep(HOUR);
                let _interval = timer.interval(HOUR);
                panic!("on purpose");
            }
        });
        assert!(unwinds.join().is_err());
        assert!(locked.is_poisoned());
        let metrics = metrics(&timer);
        assert_eq!((metrics.cancelled(), metrics.pending()), (1, 0));
        futures::executor::block_on(timer.sleep(ms(1)));
    });
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_or_is_aborted_cancels_its_sleeps() {
    let timer = own_timer();
    let aborted = tokio::spawn(timer.sleep(HOUR));
    let panicking = tokio::spawn({
        let timer = timer.clone();
        async move {
            let mut sleep = timer.sleep(HOUR);
            assert!(poll_once(&mut sleep).is_pending());
            panic!("on purpose");
        }
    });
    tokio::task::yield_now().await;
    aborted.abort();
    assert!(aborted.await.is_err() && panicking.await.is_err());
    let metrics = metrics(&timer);
    assert_eq!((metrics.cancelled(), metrics.pending()), (2, 0));
}

// ----- metrics -----

#[tokio::test(start_paused = true)]
async fn metrics_add_up_after_every_step() {
    for seed in 1..=30_u64 {
        let timer = own_timer();
        let mut random = seed;
        let mut below = |most: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % most
        };
        let mut sleeps: Vec<Sleep> = Vec::new();
        for _ in 0..400 {
            let now = Instant::now();
            let at = below(sleeps.len() as u64 + 1) as usize;
            let sleep = sleeps.get_mut(at);
            match (below(8), sleep) {
                (0 | 1, _) | (_, None) => {
                    let mut sleep = timer.sleep(ms(below(3_000)));
                    let _ = poll_once(&mut sleep);
                    sleeps.push(sleep);
                }
                (2, Some(_)) => drop(sleeps.swap_remove(at)),
                (3, Some(sleep)) => sleep.set_deadline(now + ms(below(3_000))),
                (4, Some(sleep)) => sleep.set_deadline(now - ms(1)),
                (5, Some(_)) => tokio::time::advance(ms(below(400))).await,
                (_, Some(sleep)) => drop(poll_once(sleep)),
            }
            let metrics = metrics(&timer);
            // Those that were made and wait: what is not polled again after a reset does not.
            let waiting = sleeps.iter().filter(|sleep| !sleep.is_elapsed()).count();
            assert!(metrics.pending() <= waiting as u64, "{metrics}");
        }
        let pending = metrics(&timer).pending();
        assert_eq!(timer.shutdown() as u64, pending);
        assert_eq!(metrics(&timer).stopped(), pending);
        drop(sleeps);
        metrics(&timer);
    }
}

// netty#2651, #2662, KAFKA-2226: cancel races fire.
#[test]
fn metrics_add_up_when_cancels_and_resets_race_with_the_driver() {
    within(Duration::from_secs(40), || {
        let runtime = multi_thread(2);
        let timer = inside(&runtime, own_timer);
        thread::scope(|scope| {
            for thread in 0..4_u64 {
                let timer = &timer;
                scope.spawn(move || {
                    for round in 0..2_000_u64 {
                        let probe = Probe::new();
                        let micros = (round * 37 + thread * 101) % 2_500;
                        let mut sleep = timer.sleep(Duration::from_micros(micros));
                        let _ = probe.poll(&mut sleep);
                        match round % 4 {
                            0 => drop(sleep),
                            1 => {
                                sleep.set_deadline(Instant::now() + ms(1));
                                let _ = probe.poll(&mut sleep);
                                futures::executor::block_on(sleep);
                            }
                            2 => {
                                sleep.set_deadline(Instant::now());
                                assert!(poll_once(&mut sleep).is_ready());
                            }
                            _ => futures::executor::block_on(sleep),
                        }
                        assert!(probe.wakes() <= 2);
                        metrics(timer);
                    }
                });
            }
        });
        assert_eq!(metrics(&timer).pending(), 0);
        // Whatever waker was collected to be woken is let go in the end.
        let last = Probe::new();
        let mut sleep = timer.sleep(ms(1));
        assert!(last.poll(&mut sleep).is_pending());
        eventually("the driver goes on", || last.wakes() == 1);
    });
}

// The driver is late, and a poll that arms sees to it; but not by running other tasks' wakers
// within itself: whoever polls may hold a lock that one of these wants.
#[test]
fn a_poll_that_arms_wakes_nobody_else_on_the_spot() {
    let runtime = current_thread();
    let timer = inside(&runtime, own_timer);
    let lock = Arc::new(Mutex::new(()));
    let is_within = Arc::new(AtomicUsize::new(0));
    let waker = waker_on_wake({
        let (lock, is_within) = (Arc::clone(&lock), Arc::clone(&is_within));
        move || {
            is_within.fetch_add(usize::from(lock.try_lock().is_err()), Ordering::SeqCst);
        }
    });
    let mut due = timer.sleep(ms(2));
    assert!(poll_giving(&mut due, waker).is_pending());
    // In real time, since nobody drives the runtime.
    thread::sleep(ms(20));
    let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
    let mut armed = timer.sleep(HOUR);
    assert!(poll_once(&mut armed).is_pending());
    drop(guard);
    // What it sees to: a task that takes a bite in the driver's stead.
    runtime.block_on(tokio::task::yield_now());
    assert_eq!(metrics(&timer).fired(), 1);
    assert_eq!(is_within.load(Ordering::SeqCst), 0);
}
