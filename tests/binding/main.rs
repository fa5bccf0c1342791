//! When a `timeout` finds its timer: in a task at the first poll that is pending, elsewhere at the call.

#[path = "../support/mod.rs"]
mod support;

use std::future::{pending, ready};
use std::task::Poll;
use std::thread;

use tokio::runtime::{Builder, Handle, Runtime};
use waterwheel::rpc::Deadline;
use waterwheel::{Duration, Instant, Timeout, Timer, sleep, timeout, timeout_at};

use crate::support::{
    FAR, HOUR, LIMIT, alone, assert_over, assert_panics_here, current_thread, in_a_task, inside,
    metrics, ms, multi_thread, panic_of, poll_once, within,
};

type Pending = Timeout<std::future::Pending<()>>;

/// Calls `make` in a task of the runtime.
fn made_in<R: Send + 'static>(runtime: &Runtime, make: impl FnOnce() -> R + Send + 'static) -> R {
    let task = runtime.spawn(async { make() });
    runtime.block_on(task).expect("it does not panic")
}

fn pending_on(runtime: &Runtime) -> u64 {
    metrics(&inside(runtime, Timer::current)).pending()
}

fn without_time() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .expect("a runtime")
}

#[test]
fn a_call_that_is_ready_at_once_starts_no_timer() {
    for runtime in [current_thread(), multi_thread(2)] {
        let task = runtime.spawn(async {
            let tasks = Handle::current().metrics().num_alive_tasks();
            assert_eq!(timeout(HOUR, ready(1)).await, Ok(1));
            assert_eq!(timeout(Duration::ZERO, ready(2)).await, Ok(2));
            let long_ago = Instant::now();
            assert_eq!(timeout_at(long_ago, ready(3)).await, Ok(3));
            let now = Handle::current().metrics().num_alive_tasks();
            assert_eq!(now, tasks, "no driver");
            assert!(timeout(ms(1), pending::<()>()).await.is_err());
            let now = Handle::current().metrics().num_alive_tasks();
            assert!(now > tasks, "a driver");
        });
        runtime.block_on(task).expect("it does not panic");
    }
}

#[test]
fn one_whose_deadline_has_passed_is_ready_at_its_first_poll() {
    in_a_task(|| {
        let mut late = timeout(ms(5), pending::<()>());
        let mut late_at = timeout_at(Instant::now() + ms(5), pending::<()>());
        thread::sleep(ms(10));
        assert!(poll_once(&mut late).is_ready());
        assert!(poll_once(&mut late_at).is_ready());
    });
}

// On an unpausable clock the first poll of a second or more trusts the clock read at the call, and moves the hand there.
#[test]
fn a_late_first_poll_makes_no_other_timer_early() {
    in_a_task(|| {
        for limit in [ms(1_000), ms(1_999), Duration::new(2, 999_999_999)] {
            let mut late = timeout(limit, pending::<()>());
            thread::sleep(ms(3));
            assert!(poll_once(&mut late).is_pending());
            assert_none_is_early();
        }
    });
}

#[test]
fn it_belongs_to_the_runtime_that_finds_it_pending() {
    within(LIMIT, || {
        let (home, away) = (multi_thread(1), current_thread());
        let mut limited = made_in(&home, || timeout(HOUR, pending::<()>()));
        let mut limited_at = made_in(&home, || timeout_at(Instant::now() + HOUR, pending::<()>()));
        inside(&away, || {
            assert!(poll_once(&mut limited).is_pending());
            assert!(poll_once(&mut limited_at).is_pending());
        });
        assert_eq!((pending_on(&home), pending_on(&away)), (0, 2));
        // The binding is permanent.
        inside(&home, || assert!(poll_once(&mut limited).is_pending()));
        assert_eq!((pending_on(&home), pending_on(&away)), (0, 2));
        drop((limited, limited_at));
        assert_eq!(pending_on(&away), 0);
    });
}

#[test]
fn outside_of_tasks_it_belongs_to_the_runtime_of_the_call() {
    within(LIMIT, || {
        let (home, away) = (multi_thread(1), current_thread());
        let mut limited = inside(&home, || timeout(HOUR, pending::<()>()));
        inside(&away, || assert!(poll_once(&mut limited).is_pending()));
        assert_eq!((pending_on(&home), pending_on(&away)), (1, 0));
    });
}

#[test]
fn a_timer_of_ones_own_is_bound_at_the_call() {
    in_a_task(|| {
        let timer = Timer::builder().max_pending(1).start().expect("a timer");
        let limited = timer.timeout(HOUR, pending::<()>());
        let refused = timer.try_timeout(HOUR, pending::<()>());
        assert!(refused.is_err_and(|error| error.is_at_capacity()));
        drop(limited);
        timer.shutdown();
        let refused = timer.try_timeout(HOUR, pending::<()>());
        assert!(refused.is_err_and(|error| error.is_shutdown()));
    });
}

#[test]
fn without_time_the_call_panics_outside_of_tasks_and_the_poll_in_one() {
    let runtime = without_time();
    let says = ["enable_time"];
    inside(&runtime, || {
        assert_panics_here(&says, || timeout(HOUR, ready(1)));
        assert_panics_here(&says, || timeout_at(Instant::now(), ready(1)));
    });
    let (ready, limited, limited_at) = made_in(&runtime, || {
        let at = Instant::now() + HOUR;
        let ready = poll_once(&mut timeout(HOUR, ready(1)));
        (
            ready,
            timeout(HOUR, pending::<()>()),
            timeout_at(at, pending::<()>()),
        )
    });
    assert_eq!(ready, Poll::Ready(Ok(1)));
    inside(&runtime, || {
        for mut limited in [limited, limited_at] {
            assert_poll_panics(says[0], &mut limited);
        }
    });
}

#[test]
fn in_no_runtime_the_call_panics_and_so_does_the_poll_of_one_made_in_a_task() {
    let says = ["there is no reactor running"];
    assert_panics_here(&says, || timeout(HOUR, ready(1)));
    let runtime = multi_thread(1);
    let mut limited = made_in(&runtime, || timeout(HOUR, pending::<()>()));
    assert_poll_panics(says[0], &mut limited);
}

// Runs in its own process: what is closed stays closed for all runtimes.
#[test]
fn one_made_before_a_shutdown_is_stopped_and_one_made_after_it_panics_at_the_call() {
    alone(|| {
        let runtime = multi_thread(1);
        let mut limited = made_in(&runtime, || timeout(HOUR, pending::<()>()));
        inside(&runtime, Timer::current).shutdown();
        let elapsed = inside(&runtime, || poll_once(&mut limited));
        assert!(
            matches!(&elapsed, Poll::Ready(Err(elapsed)) if elapsed.was_stopped()),
            "{elapsed:?}"
        );
        let says = ["cannot use the timer of this runtime"];
        inside(&runtime, || {
            assert_panics_here(&says, || timeout(HOUR, ready(1)));
        });
        made_in(&runtime, move || {
            assert_panics_here(&says, || timeout(HOUR, ready(1)));
            assert_panics_here(&says, || timeout_at(Instant::now() + HOUR, ready(1)));
        });
    });
}

#[test]
fn one_made_before_a_drain_is_awaited_by_it_and_one_made_after_it_panics_at_the_call() {
    alone(|| {
        let runtime = multi_thread(1);
        let mut limited = made_in(&runtime, || timeout(HOUR, pending::<()>()));
        let mut other = made_in(&runtime, || timeout(HOUR, pending::<()>()));
        inside(&runtime, || assert!(poll_once(&mut other).is_pending()));
        let mut drained = Box::pin(inside(&runtime, Timer::current).drain());
        made_in(&runtime, || {
            assert_panics_here(&["cannot use the timer of this runtime"], || {
                timeout(HOUR, ready(1))
            });
        });
        inside(&runtime, || assert!(poll_once(&mut limited).is_pending()));
        drop(other);
        assert!(poll_once(&mut drained).is_pending());
        drop(limited);
        runtime.block_on(drained);
    });
}

// Separate timers are stopped all the time, which must not affect those of runtimes.
#[test]
fn a_shutdown_of_a_timer_of_ones_own_changes_nothing() {
    alone(|| {
        let runtime = multi_thread(1);
        runtime.block_on(async {
            let timer = Timer::builder().start().expect("a timer");
            timer.drain().await;
            timer.shutdown();
        });
        let away = multi_thread(1);
        let mut limited = made_in(&runtime, || timeout(HOUR, pending::<()>()));
        inside(&away, || assert!(poll_once(&mut limited).is_pending()));
        assert_eq!((pending_on(&runtime), pending_on(&away)), (0, 1));
    });
}

/// Checks that another poll does the same.
#[track_caller]
fn assert_poll_panics(says: &str, limited: &mut Pending) {
    let panicked = panic_of(|| poll_once(limited));
    assert!(panicked.message.contains(says), "{panicked:?}");
    let again = panic_of(|| poll_once(limited));
    assert!(again.message.contains(says), "{again:?}");
}

#[test]
fn one_of_thirty_years_and_more_is_bound_late_as_well() {
    let (home, away) = (multi_thread(1), current_thread());
    for (limit, is_timed) in [(FAR, 1), (FAR + ms(1), 1), (FAR * 5, 1), (Duration::MAX, 0)] {
        let mut limited = made_in(&home, move || timeout(limit, pending::<()>()));
        inside(&away, || {
            assert!(poll_once(&mut limited).is_pending(), "{limit:?}");
            assert_none_is_early();
        });
        assert_eq!(
            (pending_on(&home), pending_on(&away)),
            (0, is_timed),
            "{limit:?}"
        );
    }
}

#[test]
fn wherever_a_task_polls_it_the_limit_holds() {
    within(LIMIT, || {
        let (home, away) = (multi_thread(2), multi_thread(1));
        let of_away = away.handle().clone();
        let task = home.spawn(async move {
            let handle = Handle::current();
            let entered = {
                let _entered = of_away.enter();
                timeout(ms(1), pending::<()>())
            };
            assert!(entered.await.is_err());
            let made = timeout(ms(1), pending::<()>());
            assert!(tokio::task::block_in_place(|| handle.block_on(made)).is_err());
            let made = timeout(ms(1), pending::<()>());
            let blocking = tokio::task::spawn_blocking(move || {
                let own = timeout(ms(1), pending::<()>());
                (handle.block_on(made), handle.block_on(own))
            });
            let (made, own) = blocking.await.expect("it does not panic");
            assert!(made.is_err() && own.is_err());
            drop(timeout(HOUR, pending::<()>()));
        });
        home.block_on(task).expect("it does not panic");
        assert_eq!((pending_on(&home), pending_on(&away)), (0, 0));
        assert_eq!(metrics(&inside(&away, Timer::current)).armed(), 0);
        let local = current_thread();
        tokio::task::LocalSet::new().block_on(&local, async {
            let task = tokio::task::spawn_local(async { timeout(ms(1), pending::<()>()).await });
            assert!(task.await.expect("it does not panic").is_err());
        });
    });
}

#[test]
fn one_whose_runtime_has_ended_works_in_another_and_panics_in_its_own() {
    within(LIMIT, || {
        let home = multi_thread(1);
        let handle = home.handle().clone();
        let soon = made_in(&home, || timeout(ms(1), pending::<()>()));
        let late = made_in(&home, || timeout(HOUR, pending::<()>()));
        drop(home);
        assert!(multi_thread(1).block_on(soon).is_err());
        assert_over(|| handle.block_on(late));
    });
}

#[test]
fn a_scope_of_a_deadline_finds_its_timer_as_a_timeout_does() {
    let runtime = without_time();
    let task = runtime.spawn(async {
        let deadline = Deadline::at(Instant::now() + HOUR);
        assert_eq!(deadline.scope(ready(1)).await, Ok(1));
        deadline.scope(pending::<()>()).await
    });
    let error = runtime.block_on(task).expect_err("no time is enabled");
    assert!(error.is_panic());
}

/// Checks that another timer of this thread is not ready before its deadline.
#[track_caller]
fn assert_none_is_early() {
    let mut other = sleep(ms(500));
    let is_early = poll_once(&mut other).is_ready() && Instant::now() < other.deadline();
    assert!(!is_early);
}
