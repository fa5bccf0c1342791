//! Firing a timer while its future is dropped, polled with another waker, or found due by a poll.

use std::future::Future;
use std::pin::Pin;

use super::host::{at, set_clock, spawn_thread};
use super::world::{
    Books, Driver, Run, Setup, Task, all_fired, books, explore, settle, settle_until_asleep, start,
    start_armed,
};
use tokio::time::Duration;

use crate::driver::Timer;

#[test]
fn a_timer_dropped_while_it_fires_is_counted_once() {
    let outcomes = explore(3, || {
        let (timer, driver, task) = start_armed();
        let host = driver.fires_at_5();
        let flag = task.cancel();
        let mut driver = host.join().unwrap();
        settle(&mut [&mut driver]);
        let books = books(&timer);
        assert_eq!((books.armed, books.pending), (1, 0));
        assert_eq!(flag.wakes() as u64, books.fired);
        assert!(flag.is_let_go());
        (books.fired, books.cancelled)
    });
    assert_eq!(outcomes, [(0, 1), (1, 0)].into());
}

#[test]
fn of_two_wakers_only_the_last_is_woken_while_the_timer_fires() {
    let outcomes = explore(3, || {
        let (timer, driver, mut task) = start_armed();
        let host = driver.fires_at_5();
        let before = task.change_flag();
        let is_ready = task.poll();
        let mut driver = host.join().unwrap();
        settle(&mut [&mut driver, &mut task]);
        assert_eq!(task.done_at, Some(5));
        let wakes = (before.wakes(), task.flag().wakes());
        match is_ready {
            true => assert!(wakes.0 <= 1 && wakes.1 == 0, "{wakes:?}"),
            false => assert_eq!(wakes, (0, 1)),
        }
        assert!(before.is_let_go() && task.flag().is_let_go());
        assert_eq!(books(&timer), all_fired(1));
        (is_ready, wakes)
    });
    let all = [(false, (0, 1)), (true, (0, 0)), (true, (1, 0))];
    assert_eq!(outcomes, all.into());
}

#[test]
fn a_poll_past_the_deadline_and_the_driver_count_one_end() {
    let wakes = explore(3, || {
        let (timer, driver, mut task) = start_armed();
        set_clock(5);
        let host = driver.fires_at_5();
        assert!(task.poll(), "ready whatever the driver has got to");
        let mut driver = host.join().unwrap();
        settle(&mut [&mut driver]);
        assert!(task.flag().is_let_go());
        assert_eq!(books(&timer), all_fired(1));
        task.flag().wakes()
    });
    assert_eq!(wakes, [0, 1].into());
}

/// Has an interval armed that ticks at 5 and at 10 ms, and a driver that is asleep.
fn start_ticks() -> (
    Timer,
    Driver,
    Task<Pin<Box<dyn Future<Output = ()> + Send>>>,
) {
    let (timer, mut driver) = start();
    let mut interval = timer.interval_at(at(5), Duration::from_millis(5));
    let mut task = Task::new(Box::pin(async move {
        assert_eq!(interval.tick().await, at(5));
        assert_eq!(interval.tick().await, at(10));
    }) as Pin<Box<dyn Future<Output = ()> + Send>>);
    settle_until_asleep(&mut [&mut task, &mut driver]);
    (timer, driver, task)
}

#[test]
fn an_interval_that_takes_its_tick_while_it_fires_ticks_again() {
    explore(3, || {
        let (timer, driver, mut task) = start_ticks();
        set_clock(5);
        let host = driver.fires_at_5();
        assert!(!task.poll(), "the second tick is to come");
        let mut driver = host.join().unwrap();
        settle(&mut [&mut driver, &mut task]);
        assert_eq!(task.done_at, Some(10));
        drop(task);
        assert_eq!(books(&timer), all_fired(2));
    });
}

/// The poll reads the clock before the tick comes, and asks the shard after.
#[test]
fn an_interval_polled_as_its_tick_comes_ticks_again() {
    let outcomes = explore(3, || {
        let (timer, driver, mut task) = start_ticks();
        let host = driver.fires_at_5();
        assert!(!task.poll(), "the second tick is to come");
        let mut driver = host.join().unwrap();
        settle(&mut [&mut driver, &mut task]);
        assert_eq!(task.done_at, Some(10));
        let wakes = task.flag().wakes();
        drop(task);
        assert_eq!(books(&timer), all_fired(2));
        wakes
    });
    assert_eq!(
        outcomes,
        [1, 2].into(),
        "one wake a tick, unless the poll came first"
    );
}

/// One permit, which the future gives back in its end or its drop, and two that want it.
#[test]
fn a_bound_is_neither_exceeded_nor_eaten_up() {
    let outcomes = explore(3, || {
        let setup = Setup {
            max_pending: Some(1),
            ..Setup::default()
        };
        let (timer, mut driver) = setup.start();
        let mut holder = Task::new(timer.sleep_until(at(5)));
        holder.run();
        let rival = timer.clone();
        let rival = spawn_thread(move || rival.try_sleep_until(at(7)).ok().map(Task::new));
        let _ = holder.cancel();
        let mine = timer.try_sleep_until(at(8)).ok().map(Task::new);
        let theirs = rival.join().unwrap();
        let admitted = (mine.is_some(), theirs.is_some());
        assert_ne!(admitted, (true, true));
        drop((mine, theirs));
        let mut last = Task::new(timer.sleep_until(at(9)));
        settle(&mut [&mut driver, &mut last]);
        assert_eq!(last.done_at, Some(9));
        let expected = Books {
            armed: 2,
            fired: 1,
            cancelled: 1,
            ..Books::default()
        };
        assert_eq!(books(&timer), expected);
        admitted
    });
    assert_eq!(outcomes, [(false, true), (true, false)].into());
}

/// Two places, of which one is given back while another is taken: one is free then.
#[test]
fn a_place_that_is_given_back_while_another_is_taken_is_counted() {
    explore(3, || {
        let setup = Setup {
            max_pending: Some(2),
            ..Setup::default()
        };
        let (timer, _driver) = setup.start();
        let holder = timer.sleep_until(at(5));
        let rival = timer.clone();
        let rival = spawn_thread(move || rival.sleep_until(at(7)));
        drop(holder);
        let theirs = rival.join().unwrap();
        let mine = timer.try_sleep_until(at(8));
        assert!(mine.is_ok(), "eaten up");
        assert!(timer.try_sleep_until(at(9)).is_err(), "exceeded");
        drop((theirs, mine));
    });
}
