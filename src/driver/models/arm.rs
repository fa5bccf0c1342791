//! Arming a timer while the driver goes to sleep: the wake-up that must not be lost.

use super::host::{at, move_clock, spawn_thread};
use super::world::{Run, Setup, Task, all_fired, books, explore, settle, start};
use crate::driver::shard::set_thread_number;

#[test]
fn an_earlier_timer_armed_as_the_driver_sleeps_is_on_time() {
    let wakes = explore(3, || {
        let (timer, mut driver) = start();
        let mut late = Task::new(timer.sleep_until(at(10)));
        late.run();
        let host = spawn_thread(move || {
            driver.run_at_most(1);
            driver
        });
        let mut early = Task::new(timer.sleep_until(at(5)));
        early.run();
        let mut driver = host.join().unwrap();
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
fn of_two_timers_armed_at_once_the_earlier_is_on_time() {
    explore(2, || {
        let (timer, mut driver) = start();
        let mut first = Task::new(timer.sleep_until(at(10)));
        first.run();
        let host = spawn_thread(move || {
            driver.run_at_most(2);
            driver
        });
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
fn a_shard_made_as_the_driver_goes_to_sleep_is_served() {
    let wakes = explore(3, || {
        let setup = Setup {
            has_two_shards: true,
            ..Setup::default()
        };
        let (timer, mut driver) = setup.start();
        set_thread_number(2);
        let mut late = Task::new(timer.sleep_until(at(10)));
        late.run();
        let host = spawn_thread(move || {
            driver.run_at_most(1);
            driver
        });
        // As another thread would: it has a shard of its own.
        set_thread_number(1);
        let mut early = Task::new(timer.sleep_until(at(5)));
        early.run();
        let mut driver = host.join().unwrap();
        let was_woken = driver.run();
        settle(&mut [&mut driver, &mut late, &mut early]);
        assert_eq!((early.done_at, late.done_at), (Some(5), Some(10)));
        assert_eq!(books(&timer), all_fired(2));
        was_woken
    });
    assert_eq!(wakes, [false, true].into());
}

#[test]
fn a_timer_armed_while_the_driver_serves_another_is_on_time() {
    explore(3, || {
        let (timer, mut driver) = start();
        let mut early = Task::new(timer.sleep_until(at(5)));
        settle_until_asleep(&mut [&mut early, &mut driver]);
        let host = spawn_thread(move || {
            move_clock(5);
            driver.run_at_most(1);
            driver
        });
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
        let (timer, mut driver) = start();
        let mut early = Task::new(timer.sleep_until(at(5)));
        settle_until_asleep(&mut [&mut early, &mut driver]);
        driver.wake();
        let host = spawn_thread(move || {
            driver.run_at_most(2);
            driver
        });
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

/// Runs what is woken, but lets no time pass.
pub(super) fn settle_until_asleep(parts: &mut [&mut dyn Run]) {
    while parts.iter_mut().any(|part| part.run()) {}
}
