//! A backlog that the driver has given to a catch-up task, together with the driver, futures that arm, and ends of the timer.

use super::host::{Spawned, at, move_clock, poll_spawned, run_tasks, run_to_the_end, set_clock};
use super::host::{set_queue_length, spawn_thread, take_tasks};
use super::world::{
    Books, Driver, Run, Task, all_fired, books, explore, settle, settle_until_asleep,
    start_two_shards,
};
use crate::driver::Timer;
use crate::driver::shard::set_thread_number;
use crate::time::Sleep;

/// The number of timers in each of two shards: the first turn and the driver's serve two each.
const EACH: usize = 7;

/// Two shards with a backlog. The driver has kept one, and the second is with a task that has not been polled.
fn backlog() -> (Timer, Driver, Vec<Task<Sleep>>, Spawned) {
    let (timer, mut driver) = start_two_shards();
    let mut herd = armed(&timer, 1, EACH);
    herd.extend(armed(&timer, 2, EACH));
    settle_until_asleep(&mut [&mut driver]);
    move_clock(5);
    assert!(driver.run(), "the first turn has left some");
    let spawned = take_tasks().try_into();
    let [catch_up] = spawned.ok().expect("one is given away, and one is kept");
    assert_eq!(books(&timer).fired as usize, 2 * 4);
    (timer, driver, herd, catch_up)
}

/// This many tasks, due at 5 on the shard with this thread number.
fn armed(timer: &Timer, number: usize, count: usize) -> Vec<Task<Sleep>> {
    set_thread_number(number);
    let mut herd: Vec<_> = (0..count)
        .map(|_| Task::new(timer.sleep_until(at(5))))
        .collect();
    herd.iter_mut().for_each(|task| {
        task.run();
    });
    herd
}

/// Lets time go on until all have ended.
fn settle_all(driver: &mut Driver, herd: &mut [Task<Sleep>], others: &mut [&mut dyn Run]) {
    let mut parts: Vec<&mut dyn Run> = vec![driver];
    parts.extend(herd.iter_mut().map(|task| task as &mut dyn Run));
    for other in others {
        parts.push(*other);
    }
    settle(&mut parts);
}

/// Asserts that each of the herd ran at this time, after one wake.
fn assert_served(herd: &[Task<Sleep>], at: u64) {
    for task in herd {
        assert_eq!((task.done_at, task.flag().wakes()), (Some(at), 1));
    }
}

#[test]
fn a_shard_that_is_given_away_loses_no_timer() {
    let outcomes = explore(3, || {
        let (timer, mut driver, mut herd, catch_up) = backlog();
        let host = spawn_thread(move || run_to_the_end(catch_up));
        driver.run_at_most(2);
        // On the shard that is given away, or was until just now.
        set_thread_number(2);
        let mut late = Task::new(timer.sleep_until(at(9)));
        late.run();
        let is_asleep = !driver.run();
        host.join().unwrap();
        settle_all(&mut driver, &mut herd, &mut [&mut late]);
        assert_served(&herd, 5);
        assert_eq!(late.done_at, Some(9));
        assert_eq!(books(&timer), all_fired(2 * EACH as u64 + 1));
        is_asleep
    });
    assert_eq!(outcomes, [false, true].into());
}

/// A task that has a shard does not keep a future from a catch-up of its own. Of the two, the last to end wakes the driver.
#[test]
fn a_late_shard_that_is_given_away_is_caught_up_by_a_future() {
    let outcomes = explore(2, || {
        let (timer, mut driver, mut herd, mut catch_up) = backlog();
        set_clock(8);
        // The driver serves its own shard, and sleeps.
        settle_until_asleep(&mut [&mut driver]);
        set_thread_number(2);
        // Finds the shard late.
        let mut late = Task::new(timer.sleep_until(at(9)));
        late.run();
        let [second] = take_tasks().try_into().ok().expect("a second catch-up");
        let host = spawn_thread(move || run_to_the_end(second));
        let has_met_it = poll_spawned(&mut catch_up).is_ready();
        drop(catch_up);
        driver.run_at_most(1);
        host.join().unwrap();
        settle_all(&mut driver, &mut herd, &mut [&mut late]);
        assert_served(&herd, 8);
        assert_eq!(late.done_at, Some(9));
        assert_eq!(books(&timer), all_fired(2 * EACH as u64 + 1));
        has_met_it
    });
    assert_eq!(outcomes, [false, true].into());
}

/// The backlog that the driver keeps has been caught up before it looks at every shard. So it does not turn again by itself.
#[test]
fn a_driver_that_gives_away_its_last_backlog_is_woken() {
    let outcomes = explore(3, || {
        let (timer, mut driver) = start_two_shards();
        let mut herd = armed(&timer, 1, 5);
        herd.extend(armed(&timer, 2, 5));
        let mut next = Task::new(timer.sleep_until(at(9)));
        next.run();
        settle_until_asleep(&mut [&mut driver]);
        move_clock(5);
        set_clock(8);
        let handle = timer.clone();
        let rival = spawn_thread(move || {
            set_thread_number(1);
            // Finds the shard late.
            let mut late = Task::new(handle.sleep_until(at(20)));
            late.run();
            run_tasks();
            late
        });
        driver.run();
        let is_asleep = !driver.run();
        let mut late = rival.join().unwrap();
        settle_all(&mut driver, &mut herd, &mut [&mut next, &mut late]);
        assert_served(&herd, 8);
        assert_eq!((next.done_at, late.done_at), (Some(9), Some(20)));
        assert_eq!(books(&timer), all_fired(12));
        is_asleep
    });
    assert_eq!(outcomes, [false, true].into());
}

#[test]
fn a_driver_that_has_given_its_backlog_away_waits() {
    explore(1, || {
        let (timer, mut driver, mut herd, mut catch_up) = backlog();
        // The task waits for a worker.
        while books(&timer).fired < 2 * 4 + 3 {
            assert!(driver.run(), "it keeps one shard");
        }
        driver.run();
        assert!(!driver.run(), "the driver spins");
        assert!(poll_spawned(&mut catch_up).is_pending());
        assert!(!driver.run(), "the driver is woken too soon");
        assert!(poll_spawned(&mut catch_up).is_ready());
        drop(catch_up);
        assert!(driver.run(), "the driver is not woken");
        settle_all(&mut driver, &mut herd, &mut []);
        assert_served(&herd, 5);
    });
}

/// While workers do not keep up, a task ends, and the driver turns all shards.
#[test]
fn no_shard_is_given_away_while_the_workers_are_behind() {
    explore(1, || {
        let (timer, mut driver, mut herd, mut catch_up) = backlog();
        set_queue_length(usize::MAX);
        assert!(poll_spawned(&mut catch_up).is_ready());
        assert_eq!(books(&timer).fired, 2 * 4 + 2, "one batch");
        drop(catch_up);
        while driver.run() {
            assert_eq!(take_tasks().len(), 0);
        }
        settle_all(&mut driver, &mut herd, &mut []);
        assert_served(&herd, 5);
    });
}

#[test]
fn a_shard_that_is_done_is_not_given_away() {
    explore(1, || {
        let (timer, mut driver) = start_two_shards();
        // The driver's turn of the first leaves one, that of the second none.
        let mut herd = armed(&timer, 1, 5);
        herd.extend(armed(&timer, 2, 4));
        settle_until_asleep(&mut [&mut driver]);
        move_clock(5);
        assert!(driver.run(), "the first turn has left some");
        assert_eq!(take_tasks().len(), 0);
        settle_all(&mut driver, &mut herd, &mut []);
        assert_served(&herd, 5);
    });
}

/// Then a batch a round trip is too little. The driver serves more by how long it had to wait, and keeps all shards meanwhile.
#[test]
fn a_task_that_had_to_wait_gives_its_shard_back() {
    explore(1, || {
        let (timer, mut driver, mut herd, mut catch_up) = backlog();
        set_clock(30);
        assert!(poll_spawned(&mut catch_up).is_ready());
        assert_eq!(books(&timer).fired, 2 * 4, "it has turned nothing");
        drop(catch_up);
        while driver.run() {
            assert_eq!(take_tasks().len(), 0);
        }
        settle_all(&mut driver, &mut herd, &mut []);
        assert_served(&herd, 30);
    });
}

/// As when the runtime drops its tasks. Here the driver goes on, so that it shows what it was left with.
#[test]
fn a_catch_up_that_is_dropped_gives_its_shard_back() {
    explore(3, || {
        let (timer, mut driver, mut herd, catch_up) = backlog();
        let host = spawn_thread(move || drop(catch_up));
        driver.run_at_most(3);
        host.join().unwrap();
        settle_all(&mut driver, &mut herd, &mut []);
        assert_served(&herd, 5);
        assert_eq!(books(&timer), all_fired(2 * EACH as u64));
    });
}

#[test]
fn a_timer_stopped_while_a_shard_is_given_away_ends_each_once() {
    explore(3, || {
        let (timer, mut driver, mut herd, catch_up) = backlog();
        let host = spawn_thread(move || run_to_the_end(catch_up));
        let stopped = timer.shutdown() as u64;
        host.join().unwrap();
        settle_all(&mut driver, &mut herd, &mut []);
        assert_served(&herd, 5);
        assert!(driver.is_over());
        let armed = 2 * EACH as u64;
        let expected = Books {
            armed,
            fired: armed - stopped,
            stopped,
            ..Books::default()
        };
        assert_eq!(books(&timer), expected);
    });
}

/// The task may hold the last reference to its shard.
#[test]
fn the_driver_ends_after_a_catch_up_that_outlives_all_else() {
    explore(3, || {
        let (timer, mut driver, herd, catch_up) = backlog();
        let host = spawn_thread(move || run_to_the_end(catch_up));
        drop(timer);
        drop(herd);
        driver.run_at_most(2);
        host.join().unwrap();
        while driver.run() {}
        assert!(driver.is_over());
    });
}

#[test]
fn a_drain_awaits_a_shard_that_is_given_away() {
    explore(2, || {
        let (timer, mut driver, mut herd, catch_up) = backlog();
        let host = spawn_thread(move || run_to_the_end(catch_up));
        let mut drain = Task::new(Box::pin(timer.drain()));
        drain.run();
        driver.run_at_most(2);
        host.join().unwrap();
        settle_all(&mut driver, &mut herd, &mut [&mut drain]);
        assert_served(&herd, 5);
        assert!(drain.done_at.is_some() && driver.is_over());
        assert_eq!(books(&timer), all_fired(2 * EACH as u64));
    });
}
