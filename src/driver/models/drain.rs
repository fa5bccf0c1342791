//! Draining a timer: the last timer that ends wakes the future that waits for the drain.

use super::host::{at, spawn_thread};
use super::world::{Run, Task, books, explore, settle, start, start_armed, start_two_shards};
use crate::driver::shard::set_thread_number;

#[test]
fn the_last_timer_is_cancelled_while_the_drain_looks_for_it() {
    explore(3, || {
        let (timer, mut driver, task) = start_armed();
        let mut drain = Task::new(Box::pin(timer.drain()));
        let owner = spawn_thread(move || drop(task.cancel()));
        drain.run();
        owner.join().unwrap();
        settle(&mut [&mut drain]);
        assert_eq!(drain.done_at, Some(0));
        settle(&mut [&mut driver]);
        assert!(timer.is_stopped() && driver.is_over());
        assert_eq!(books(&timer).cancelled, 1);
    });
}

#[test]
fn the_last_timer_fires_while_the_drain_looks_for_it() {
    explore(3, || {
        let (timer, driver, mut task) = start_armed();
        let mut drain = Task::new(Box::pin(timer.drain()));
        let host = driver.fires_at_5();
        drain.run();
        let mut driver = host.join().unwrap();
        settle(&mut [&mut drain]);
        assert_eq!(drain.done_at, Some(5));
        settle(&mut [&mut task, &mut driver]);
        assert_eq!(task.done_at, Some(5));
        assert!(driver.is_over());
        assert_eq!(books(&timer).fired, 1);
    });
}

#[test]
fn a_timer_armed_as_the_drain_begins_is_awaited_or_stopped() {
    // The one it would have used is there already, or is made meanwhile.
    for has_shard in [true, false] {
        let outcomes = explore(3, move || {
            let (timer, mut driver) = start();
            driver.run();
            if has_shard {
                timer.shard();
            }
            let drainer = timer.clone();
            let drainer = spawn_thread(move || {
                let mut drain = Task::new(Box::pin(drainer.drain()));
                drain.run();
                drain
            });
            let mut task = timer.try_sleep_until(at(5)).ok().map(Task::new);
            if let Some(task) = &mut task {
                task.run();
            }
            let mut drain = drainer.join().unwrap();
            settle(&mut [&mut driver, &mut drain]);
            assert!(drain.done_at.is_some() && driver.is_over());
            let books = books(&timer);
            assert_eq!(books.pending, 0);
            let outcome = task.map(|mut task| {
                settle(&mut [&mut task]);
                assert!(task.done_at.is_some());
                task.future.was_stopped()
            });
            assert_eq!(drain.done_at, Some(5 * books.fired));
            outcome
        });
        assert_eq!(outcomes, [None, Some(false), Some(true)].into());
    }
}

/// Its future was admitted long ago, and polls on another thread, which makes its shard.
#[test]
fn a_shard_made_by_a_poll_as_the_drain_begins_is_drained() {
    let outcomes = explore(3, || {
        let (timer, mut driver) = start_two_shards();
        set_thread_number(2);
        let mut task = Task::new(timer.sleep_until(at(5)));
        driver.run();
        let drainer = timer.clone();
        let drainer = spawn_thread(move || {
            let mut drain = Task::new(Box::pin(drainer.drain()));
            drain.run();
            drain
        });
        set_thread_number(1);
        task.run();
        let mut drain = drainer.join().unwrap();
        settle(&mut [&mut driver, &mut drain]);
        assert_eq!(drain.done_at, Some(5 * books(&timer).fired));
        settle(&mut [&mut task]);
        assert!(task.done_at.is_some() && driver.is_over());
        task.future.was_stopped()
    });
    assert_eq!(outcomes, [false, true].into());
}

#[test]
fn a_timer_stopped_as_the_drain_begins_to_wait_is_drained() {
    explore(3, || {
        let (timer, mut driver, mut task) = start_armed();
        let mut drain = Task::new(Box::pin(timer.drain()));
        let owner = timer.clone();
        let owner = spawn_thread(move || owner.shutdown());
        drain.run();
        assert_eq!(owner.join().unwrap(), 1);
        settle(&mut [&mut drain, &mut task, &mut driver]);
        assert_eq!((drain.done_at, task.done_at), (Some(0), Some(0)));
        assert!(drain.cancel().is_let_go() && driver.is_over());
    });
}
