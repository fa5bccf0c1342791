//! Firing a timer, or going to sleep over it, while its deadline is moved.

use super::host::at;
use super::world::{
    Run, Task, all_fired, books, explore, settle, settle_until_asleep, start, start_armed,
};

/// Postpones a timer of 5 ms with each of these deadlines in turn while it fires; whether it had
/// fired before the future was polled again. It must be served at the last one.
fn move_while_it_fires(deadlines: &'static [u64], then_poll: bool) {
    let fired_before = explore(3, move || {
        let (timer, driver, mut task) = start_armed();
        let host = driver.fires_at_5();
        for &deadline in deadlines {
            task.future.set_deadline(at(deadline));
        }
        if then_poll {
            assert!(!task.poll(), "early");
        }
        let mut driver = host.join().unwrap();
        settle(&mut [&mut driver, &mut task]);
        assert_eq!(task.done_at, deadlines.last().copied());
        assert!(task.flag().is_let_go());
        let books = books(&timer);
        assert_eq!(books, all_fired(books.armed));
        books.armed
    });
    // If the driver was first, the future armed again.
    assert_eq!(fired_before, [1, 2].into());
}

#[test]
fn a_timer_postponed_while_it_fires_fires_at_its_new_deadline() {
    move_while_it_fires(&[9], false);
}

#[test]
fn and_so_is_one_that_is_polled_at_once() {
    move_while_it_fires(&[9], true);
}

#[test]
fn a_timer_moved_twice_while_firing_fires_at_its_last_deadline() {
    move_while_it_fires(&[9, 7], true);
}

/// The cell of the slab place has a deadline of the timer that was there before.
#[test]
fn a_timer_postponed_while_it_fires_gets_no_other_ones_deadline() {
    explore(3, || {
        let (timer, mut driver) = start();
        let mut before = Task::new(timer.sleep_until(at(5)));
        before.run();
        before.future.set_deadline(at(1_000));
        let _ = before.cancel();
        let mut task = Task::new(timer.sleep_until(at(5)));
        settle_until_asleep(&mut [&mut task, &mut driver]);
        let host = driver.fires_at_5();
        task.future.set_deadline(at(9));
        let mut driver = host.join().unwrap();
        settle(&mut [&mut driver, &mut task]);
        assert_eq!(task.done_at, Some(9));
    });
}

#[test]
fn a_timer_moved_earlier_as_the_driver_sleeps_is_on_time() {
    let wakes = explore(3, || {
        let (timer, driver) = start();
        let mut task = Task::new(timer.sleep_until(at(10)));
        task.run();
        let host = driver.run_on_thread(1);
        task.future.set_deadline(at(5));
        let mut driver = host.join().unwrap();
        let was_woken = driver.run();
        settle(&mut [&mut driver, &mut task]);
        assert_eq!(task.done_at, Some(5));
        assert_eq!(books(&timer), all_fired(1));
        was_woken
    });
    assert_eq!(wakes, [false, true].into());
}

#[test]
fn a_timer_moved_to_the_past_while_it_fires_wakes_once() {
    explore(3, || {
        let (timer, driver, mut task) = start_armed();
        let host = driver.fires_at_5();
        task.future.set_deadline(at(0));
        let mut driver = host.join().unwrap();
        assert_eq!(task.flag().wakes(), 1);
        settle(&mut [&mut driver, &mut task]);
        assert!(task.done_at.is_some() && task.flag().is_let_go());
        assert_eq!(books(&timer), all_fired(1));
    });
}
