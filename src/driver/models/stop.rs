//! Stopping a timer, or dropping its driver with the runtime, while others use it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::host::{at, end_clock, spawn_thread};
use super::world::{
    Books, Run, Setup, Task, books, explore, settle, start, start_armed, start_two_shards,
};
use crate::Sleep;
use crate::driver::lifecycle::End;
use crate::driver::shard::set_thread_number;
use crate::driver::wakeup::Waking;

#[test]
fn a_timer_that_is_armed_while_it_is_stopped_ends_at_once() {
    let outcomes = explore(3, || {
        let (timer, mut driver) = start();
        let mut task = Task::new(timer.sleep_until(at(5)));
        driver.run();
        let owner = timer.clone();
        let owner = spawn_thread(move || owner.shutdown());
        task.run();
        let stopped = owner.join().unwrap();
        settle(&mut [&mut driver, &mut task]);
        assert_eq!(task.done_at, Some(0));
        assert!(task.future.was_stopped() && task.flag().is_let_go());
        assert!(driver.is_over());
        let expected = Books {
            armed: stopped as u64,
            stopped: stopped as u64,
            ..Books::default()
        };
        assert_eq!(books(&timer), expected);
        stopped
    });
    assert_eq!(outcomes, [0, 1].into());
}

/// The list does not have the shard yet when the timer is stopped, or just has it.
#[test]
fn a_shard_made_while_the_timer_is_stopped_is_stopped() {
    let outcomes = explore(3, || {
        let (timer, mut driver) = start();
        driver.run();
        let owner = timer.clone();
        let owner = spawn_thread(move || owner.shutdown());
        let task = timer.try_sleep_until(at(5)).ok().map(Task::new);
        let was_admitted = task.is_some();
        if let Some(mut task) = task {
            task.run();
            owner.join().unwrap();
            settle(&mut [&mut driver, &mut task]);
            assert_eq!(task.done_at, Some(0));
            assert!(task.future.was_stopped() && task.flag().is_let_go());
        } else {
            owner.join().unwrap();
            settle(&mut [&mut driver]);
        }
        assert!(driver.is_over());
        assert_eq!(books(&timer).pending, 0);
        (was_admitted, books(&timer).stopped)
    });
    assert_eq!(outcomes, [(false, 0), (true, 0), (true, 1)].into());
}

/// The same, but its future was admitted long ago, and is first polled on another thread.
#[test]
fn a_shard_made_by_a_poll_during_the_stop_is_stopped() {
    let outcomes = explore(3, || {
        let (timer, mut driver) = start_two_shards();
        set_thread_number(2);
        let mut task = Task::new(timer.sleep_until(at(5)));
        driver.run();
        let owner = timer.clone();
        let owner = spawn_thread(move || owner.shutdown());
        set_thread_number(1);
        task.run();
        owner.join().unwrap();
        settle(&mut [&mut driver, &mut task]);
        assert_eq!(task.done_at, Some(0));
        assert!(task.future.was_stopped() && task.flag().is_let_go());
        assert!(driver.is_over());
        books(&timer).stopped
    });
    assert_eq!(outcomes, [0, 1].into());
}

#[test]
fn a_timer_that_fires_while_it_is_stopped_ends_once() {
    let outcomes = explore(3, || {
        let (timer, driver, mut task) = start_armed();
        let host = driver.fires_at_5();
        let stopped = timer.shutdown() as u64;
        let mut driver = host.join().unwrap();
        settle(&mut [&mut driver, &mut task]);
        assert!(task.done_at.is_some());
        assert_eq!(task.flag().wakes(), 1);
        assert!(task.flag().is_let_go() && driver.is_over());
        let expected = Books {
            armed: 1,
            fired: 1 - stopped,
            stopped,
            ..Books::default()
        };
        assert_eq!(books(&timer), expected);
        stopped
    });
    assert_eq!(outcomes, [0, 1].into());
}

#[test]
fn a_timer_moved_and_polled_during_the_stop_ends_at_once() {
    for deadline in [3, 9] {
        explore(3, move || {
            let (timer, mut driver, mut task) = start_armed();
            let owner = timer.clone();
            let owner = spawn_thread(move || owner.shutdown());
            task.future.set_deadline(at(deadline));
            let before = task.change_flag();
            task.run();
            assert_eq!(owner.join().unwrap(), 1);
            settle(&mut [&mut driver, &mut task]);
            assert_eq!(task.done_at, Some(0));
            assert!(before.is_let_go() && task.flag().is_let_go());
            assert_eq!(books(&timer).stopped, 1);
        });
    }
}

#[test]
fn two_that_stop_a_timer_count_its_pending_once() {
    let counts = explore(3, || {
        let (timer, mut driver, mut task) = start_armed();
        let other = timer.clone();
        let other = spawn_thread(move || other.shutdown());
        let mine = timer.shutdown();
        let both = (mine, other.join().unwrap());
        settle(&mut [&mut driver, &mut task]);
        assert_eq!(task.done_at, Some(0));
        assert_eq!(books(&timer).stopped, 1);
        both
    });
    assert_eq!(counts, [(0, 1), (1, 0)].into());
}

/// Ready as well if the timer has ended: a panic for each interleaving would be a long report.
struct OrEnd(Sleep);

impl Future for OrEnd {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.poll_or_end(context)
    }
}

#[test]
fn a_timer_that_is_armed_while_its_runtime_ends_is_woken() {
    for waking in [Waking::TokioOnly, Waking::Thread, Waking::Watched] {
        let outcomes = explore(3, move || {
            let setup = Setup {
                waking,
                ..Setup::default()
            };
            let (timer, mut driver) = setup.start();
            let mut task = Task::new(OrEnd(timer.sleep_until(at(5))));
            driver.run();
            let runtime = spawn_thread(move || {
                drop(driver);
                end_clock();
            });
            task.run();
            let was_pending = task.done_at.is_none();
            runtime.join().unwrap();
            settle(&mut [&mut task]);
            assert_eq!(task.done_at, Some(0), "nothing wakes it");
            assert!(matches!(task.future.0.found_end(), Some(End::Over)));
            assert!(task.flag().is_let_go());
            assert!(timer.is_stopped());
            assert_eq!(books(&timer).pending, 0);
            // The thread ends once it has no member. A member that is left behind would keep it alive forever.
            super::host::join_watchdog();
            was_pending
        });
        assert_eq!(outcomes, [false, true].into());
    }
}

#[test]
fn a_timer_is_pending_until_the_clock_of_its_runtime_ends() {
    explore(3, || {
        let (timer, mut driver) = start();
        let mut task = Task::new(OrEnd(timer.sleep_until(at(5))));
        driver.run();
        let runtime = spawn_thread(move || drop(driver));
        task.run();
        runtime.join().unwrap();
        settle(&mut [&mut task]);
        assert_eq!(task.done_at, None, "it is early");
        assert_eq!(books(&timer).pending, 1);
        end_clock();
        settle(&mut [&mut task]);
        assert_eq!(task.done_at, Some(0));
        assert_eq!(books(&timer).pending, 0);
    });
}

/// Its owner stops it while its runtime ends: both may find the pending timer, and one of them ends it.
#[test]
fn a_timer_that_is_stopped_while_its_runtime_ends_is_woken() {
    explore(3, || {
        let (timer, driver, mut task) = start_armed();
        let runtime = spawn_thread(move || {
            drop(driver);
            end_clock();
        });
        timer.shutdown();
        runtime.join().unwrap();
        settle(&mut [&mut task]);
        assert_eq!(task.done_at, Some(0));
        assert!(task.future.was_stopped());
        assert_eq!(books(&timer).pending, 0);
    });
}
