//! Two threads that turn one overdue shard: the driver, or what stands in for it, and a catch-up task
//! that a future has spawned.

use super::host::{at, move_clock, run_tasks, set_clock, spawn_thread, turn_tokios_clock};
use super::world::{
    Run, Task, all_fired, books, explore, settle, settle_until_asleep, start, start_armed,
    start_two_shards,
};
use crate::driver::shard::set_thread_number;

#[test]
fn a_driver_and_a_catch_up_serve_each_overdue_timer_once() {
    let outcomes = explore(3, || {
        let (timer, mut driver) = start();
        let mut overdue = [5, 5, 9].map(|millis| Task::new(timer.sleep_until(at(millis))));
        for task in &mut overdue {
            task.run();
        }
        settle_until_asleep(&mut [&mut driver]);
        // No thread turns anything.
        set_clock(8);
        let host = spawn_thread(move || {
            turn_tokios_clock();
            driver.run_at_most(1);
            // One more comes due while the catch-up may still be waking the first.
            move_clock(9);
            driver.run_at_most(1);
            driver
        });
        let mut late = Task::new(timer.sleep_until(at(20)));
        late.run();
        let had_catch_up = run_tasks();
        let mut driver = host.join().unwrap();
        settle(&mut [&mut driver]);
        let wakes: Vec<_> = overdue.iter().map(|it| it.flag().last_wake()).collect();
        assert!(wakes.is_sorted(), "woken as they were filed: {wakes:?}");
        for task in &mut overdue {
            assert_eq!(task.flag().wakes(), 1);
            assert!(task.poll() && task.flag().is_let_go());
        }
        settle(&mut [&mut driver, &mut late]);
        assert_eq!(late.done_at, Some(20));
        assert_eq!(books(&timer), all_fired(4));
        had_catch_up
    });
    assert_eq!(outcomes, [0, 1].into());
}

/// The turn has seen only the shards that it turned, so it does not know everything that is to come.
#[test]
fn a_first_turn_that_left_out_a_shard_sets_no_target() {
    explore(3, || {
        let (timer, mut driver, mut due) = start_armed();
        set_clock(7);
        // Finds the shard late, and spawns a catch-up.
        let mut later = Task::new(timer.sleep_until(at(9)));
        later.run();
        let host = spawn_thread(move || {
            run_tasks();
            driver.run_at_most(1);
            driver
        });
        turn_tokios_clock();
        let mut driver = host.join().unwrap();
        settle(&mut [&mut driver, &mut due, &mut later]);
        assert_eq!(later.done_at, Some(9));
        assert_eq!(books(&timer), all_fired(2));
    });
}

#[test]
fn a_slow_catch_up_of_one_shard_holds_up_no_other() {
    let outcomes = explore(2, || {
        let (timer, mut driver) = start_two_shards();
        set_thread_number(1);
        let mut overdue = Task::new(timer.sleep_until(at(5)));
        overdue.run();
        set_thread_number(2);
        let mut other = Task::new(timer.sleep_until(at(10)));
        other.run();
        settle_until_asleep(&mut [&mut driver]);
        // No thread advances tokio's clock yet.
        set_clock(8);
        let handle = timer.clone();
        let helper = spawn_thread(move || {
            set_thread_number(1);
            let mut late = Task::new(handle.sleep_until(at(20)));
            late.run();
            (run_tasks(), late)
        });
        turn_tokios_clock();
        driver.run_at_most(2);
        // Whether or not the helper still holds its shard.
        move_clock(10);
        driver.run_at_most(2);
        assert_eq!(other.flag().wakes(), 1);
        let (had_catch_up, mut late) = helper.join().unwrap();
        settle(&mut [&mut driver, &mut overdue, &mut other, &mut late]);
        assert_eq!(books(&timer), all_fired(3));
        had_catch_up
    });
    assert_eq!(outcomes, [0, 1].into());
}

#[test]
fn two_futures_that_find_a_shard_overdue_spawn_one_catch_up() {
    explore(2, || {
        let (timer, mut driver, mut overdue) = start_armed();
        set_clock(8);
        let rival = timer.clone();
        let rival = spawn_thread(move || {
            let mut task = Task::new(rival.sleep_until(at(9)));
            task.run();
            (run_tasks(), task)
        });
        let mut mine = Task::new(timer.sleep_until(at(20)));
        mine.run();
        let catch_ups = run_tasks();
        let (more, mut theirs) = rival.join().unwrap();
        assert_eq!(catch_ups + more, 1);
        assert_eq!(overdue.flag().wakes(), 1, "though the driver never came");
        settle(&mut [&mut driver, &mut overdue, &mut mine, &mut theirs]);
        assert_eq!((theirs.done_at, mine.done_at), (Some(9), Some(20)));
        assert_eq!(books(&timer), all_fired(3));
    });
}

#[test]
fn after_a_catch_up_another_may_be_spawned() {
    explore(1, || {
        let (timer, mut driver) = start();
        let mut overdue = [5, 10].map(|millis| Task::new(timer.sleep_until(at(millis))));
        for task in &mut overdue {
            task.run();
        }
        settle_until_asleep(&mut [&mut driver]);
        let mut late = [8, 13].map(|now| {
            set_clock(now);
            let mut task = Task::new(timer.sleep_until(at(20)));
            task.run();
            assert_eq!(run_tasks(), 1, "at {now}");
            task
        });
        for task in &mut overdue {
            assert_eq!(task.flag().wakes(), 1, "though the driver never came");
            task.run();
        }
        let [first, second] = &mut late;
        settle(&mut [&mut driver, first, second]);
        assert_eq!(books(&timer), all_fired(4));
    });
}

#[test]
fn a_driver_that_leaves_a_shard_to_another_thread_waits() {
    explore(1, || {
        let (timer, mut driver, mut overdue) = start_armed();
        // A catch-up task that has begun, and whose thread is held up.
        let turning = &timer.shard().turning;
        assert!(turning.begin_if_free());
        move_clock(8);
        assert!(driver.run(), "the first turn leaves the rest to the task");
        assert!(!driver.run(), "the driver spins");
        assert!(turning.end(), "the driver was there");
        driver.wake();
        settle(&mut [&mut driver, &mut overdue]);
        assert_eq!(overdue.done_at, Some(8));
        assert_eq!(books(&timer), all_fired(1));
    });
}
