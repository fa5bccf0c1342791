//! Arming a timer while the driver goes to sleep: the wake-up that must not be lost.

use super::host::{at, move_clock, spawn_thread};
use super::world::{
    Run, Task, all_fired, books, explore, settle, start, start_armed, start_two_shards,
};
use crate::driver::shard::set_thread_number;

/// Arms a timer of 5 ms, on the shard of the one that was armed before or on the first timer of its own, as another thread would.
fn arm_as_the_driver_sleeps(is_on_other_shard: bool) {
    let wakes = explore(3, move || {
        let (timer, mut driver) = match is_on_other_shard {
            true => start_two_shards(),
            false => start(),
        };
        set_thread_number(2);
        let mut late = Task::new(timer.sleep_until(at(10)));
        late.run();
        let host = driver.run_on_thread(1);
        set_thread_number(1);
        let mut early = Task::new(timer.sleep_until(at(5)));
        early.run();
        driver = host.join().unwrap();
        let was_woken = driver.run();
        settle(&mut [&mut driver, &mut late, &mut early]);
        assert_eq!((early.done_at, late.done_at), (Some(5), Some(10)));
        assert_eq!(books(&timer), all_fired(2));
        was_woken
    });
    assert_eq!(
        wakes,
        [false, true].into(),
        "the driver sees it, or is woken"
    );
}

#[test]
fn an_earlier_timer_armed_as_the_driver_sleeps_is_on_time() {
    arm_as_the_driver_sleeps(false);
}

#[test]
fn a_shard_made_as_the_driver_goes_to_sleep_is_served() {
    arm_as_the_driver_sleeps(true);
}

#[test]
fn of_two_timers_armed_at_once_the_earlier_is_on_time() {
    explore(2, || {
        let (timer, driver) = start();
        let mut first = Task::new(timer.sleep_until(at(10)));
        first.run();
        let host = driver.run_on_thread(2);
        let mut second = Task::new(timer.sleep_until(at(7)));
        let armer = spawn_thread(move || {
            second.run();
            second
        });
        let mut third = Task::new(timer.sleep_until(at(5)));
        third.run();
        let mut second = armer.join().unwrap();
        let mut driver = host.join().unwrap();
        settle(&mut [&mut driver, &mut first, &mut second, &mut third]);
        let done = [first.done_at, second.done_at, third.done_at];
        assert_eq!(done, [Some(10), Some(7), Some(5)]);
        assert_eq!(books(&timer), all_fired(3));
    });
}

#[test]
fn a_timer_armed_while_the_driver_serves_another_is_on_time() {
    explore(3, || {
        let (timer, driver, mut early) = start_armed();
        let host = driver.fires_at_5();
        let mut late = Task::new(timer.sleep_until(at(8)));
        late.run();
        let mut driver = host.join().unwrap();
        settle(&mut [&mut driver, &mut early, &mut late]);
        assert_eq!((early.done_at, late.done_at), (Some(5), Some(8)));
        assert_eq!(early.flag().wakes(), 1);
        assert_eq!(books(&timer), all_fired(2));
    });
}

/// tokio's clock wakes no task but takes the first turn itself, on the thread that turns it, while
/// the driver may be running for another reason.
#[test]
fn a_first_turn_and_the_driver_hide_no_timer_from_each_other() {
    explore(2, || {
        let (timer, mut driver, mut early) = start_armed();
        driver.wake();
        let host = driver.run_on_thread(2);
        let worker = spawn_thread(|| move_clock(5));
        let mut late = Task::new(timer.sleep_until(at(8)));
        late.run();
        worker.join().unwrap();
        let mut driver = host.join().unwrap();
        settle(&mut [&mut driver, &mut early, &mut late]);
        assert_eq!((early.done_at, late.done_at), (Some(5), Some(8)));
        assert_eq!(early.flag().wakes(), 1);
        assert_eq!(books(&timer), all_fired(2));
    });
}
