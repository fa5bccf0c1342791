//! The end of a timer: the last handle, the last future and the driver, in any order.

use std::sync::Arc;

use super::host::{at, spawn_thread};
use super::world::{Run, Task, explore, settle, start};

#[test]
fn the_driver_ends_if_the_last_handle_and_future_go_at_once() {
    explore(3, || {
        let (timer, driver) = start();
        let mut task = Task::new(timer.sleep_until(at(5)));
        task.run();
        let wakeup = Arc::downgrade(&timer.core.common.wakeup);
        let host = driver.run_on_thread(1);
        let owner = spawn_thread(move || drop(timer));
        let flag = task.cancel();
        owner.join().unwrap();
        let mut driver = host.join().unwrap();
        while driver.run() {}
        assert!(
            driver.is_over(),
            "it is not left asleep, nor until a deadline"
        );
        assert!(flag.is_let_go());
        assert_eq!(wakeup.strong_count(), 0);
    });
}

#[test]
fn a_future_that_outlives_the_handles_is_served() {
    explore(3, || {
        let (timer, driver) = start();
        let wakeup = Arc::downgrade(&timer.core.common.wakeup);
        let host = driver.run_on_thread(2);
        // Its shard is made here.
        let mut task = Task::new(timer.sleep_until(at(5)));
        task.run();
        drop(timer);
        let mut driver = host.join().unwrap();
        assert!(!driver.is_over());
        settle(&mut [&mut driver, &mut task]);
        assert_eq!(task.done_at, Some(5));
        assert!(!task.future.was_stopped());
        drop(task);
        settle(&mut [&mut driver]);
        assert!(driver.is_over());
        assert_eq!(wakeup.strong_count(), 0);
    });
}

#[test]
fn a_timer_that_was_never_used_ends_with_its_last_handle() {
    let wakes = explore(3, || {
        let (timer, driver) = start();
        let wakeup = Arc::downgrade(&timer.core.common.wakeup);
        let host = driver.run_on_thread(1);
        drop(timer);
        let mut driver = host.join().unwrap();
        let was_woken = driver.run();
        assert!(driver.is_over(), "it is left asleep");
        assert_eq!(wakeup.strong_count(), 0);
        was_woken
    });
    assert_eq!(wakes, [false, true].into());
}
