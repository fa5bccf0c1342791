//! The watchdog thread, the driver's task, and the futures that lower its target.

use super::host::{
    Nudges, at, join_watchdog, move_clock_for_thread, refuse_threads, set_clock, set_nudges,
    spawn_thread, turn_tokios_clock, wait_for_nudge,
};
use super::world::{
    Driver, Run, Setup, Task, all_fired, books, explore, settle, settle_until_asleep,
};
use crate::{Sleep, Timer, Waking};

fn start() -> (Timer, Driver) {
    start_with(Waking::Thread)
}

fn start_with(waking: Waking) -> (Timer, Driver) {
    let setup = Setup {
        waking,
        ..Setup::default()
    };
    setup.start()
}

/// A thread that runs the driver until the timer is gone.
fn run(mut driver: Driver) -> loom::thread::JoinHandle<()> {
    spawn_thread(move || driver.run_until(|| false))
}

/// Drops the timer and its futures, and waits for the driver's thread and the watchdog.
fn end<T>(timer_and_futures: T, host: loom::thread::JoinHandle<()>) {
    drop(timer_and_futures);
    host.join().unwrap();
    join_watchdog();
}

/// A sleep of 5 ms whose driver is nudged, on a thread of its own, while no worker waits on tokio's clock.
fn nudged_at_5() -> (Timer, Task<Sleep>, loom::thread::JoinHandle<()>) {
    set_nudges(Nudges::WaitForAWorker);
    let (timer, mut driver) = start();
    let mut task = Task::new(timer.sleep_until(at(5)));
    settle_until_asleep(&mut [&mut task, &mut driver]);
    let host = run(driver);
    move_clock_for_thread(5);
    wait_for_nudge();
    (timer, task, host)
}

#[test]
fn a_timer_armed_while_the_driver_goes_to_sleep_is_on_time() {
    explore(2, || {
        let (timer, driver) = start();
        let host = run(driver);
        let mut task = Task::new(timer.sleep_until(at(5)));
        task.run();
        move_clock_for_thread(5);
        task.block_on();
        assert_eq!(task.done_at, Some(5));
        assert_eq!(books(&timer), all_fired(1));
        end((task, timer), host);
    });
}

#[test]
fn a_timer_armed_while_the_thread_goes_to_sleep_is_on_time() {
    explore(2, || {
        let (timer, mut driver) = start();
        let mut late = Task::new(timer.sleep_until(at(10)));
        // The watchdog thread is started here.
        settle_until_asleep(&mut [&mut late, &mut driver]);
        let mut early = Task::new(timer.sleep_until(at(5)));
        early.run();
        let host = run(driver);
        move_clock_for_thread(5);
        early.block_on();
        assert_eq!(early.done_at, Some(5));
        move_clock_for_thread(10);
        late.block_on();
        assert_eq!(books(&timer), all_fired(2));
        end((early, late, timer), host);
    });
}

#[test]
fn of_two_timers_armed_at_once_the_thread_takes_the_earlier() {
    explore(2, || {
        let (timer, mut driver) = start();
        driver.run();
        let mut early = Task::new(timer.sleep_until(at(5)));
        let mut late = Task::new(timer.sleep_until(at(7)));
        let rival = spawn_thread(move || {
            late.run();
            late
        });
        early.run();
        let late = rival.join().unwrap();
        move_clock_for_thread(5);
        driver.run_until(|| early.flag().wakes() > 0);
        assert!(early.poll());
        drop((early, late, timer));
        driver.run_until(|| false);
        join_watchdog();
    });
}

#[test]
fn an_unanswered_nudge_is_followed_by_a_wake() {
    explore(2, || {
        let (timer, mut task, host) = nudged_at_5();
        // Meanwhile, at any moment of what the thread does next.
        let mut late = Task::new(timer.sleep_until(at(8)));
        late.run();
        move_clock_for_thread(6);
        task.block_on();
        assert_eq!(task.done_at, Some(6));
        end((task, late, timer), host);
    });
}

#[test]
fn an_answered_nudge_takes_the_first_turn_and_wakes_the_driver() {
    explore(2, || {
        let (timer, mut task, host) = nudged_at_5();
        // Takes the first turn here, and wakes the driver for the rest.
        turn_tokios_clock();
        assert_eq!(task.flag().wakes(), 1);
        task.block_on();
        set_nudges(Nudges::FireAtOnce);
        let mut late = Task::new(timer.sleep_until(at(8)));
        late.run();
        move_clock_for_thread(8);
        late.block_on();
        assert_eq!(books(&timer), all_fired(2));
        end((task, late, timer), host);
    });
}

#[test]
fn a_timer_stopped_during_an_update_does_not_keep_the_thread() {
    explore(2, || {
        let (timer, mut driver) = start();
        let mut task = Task::new(timer.sleep_until(at(5)));
        driver.run();
        let owner = timer.clone();
        let owner = spawn_thread(move || {
            owner.shutdown();
            driver.run_at_most(1);
            driver
        });
        task.run();
        let mut driver = owner.join().unwrap();
        settle_until_asleep(&mut [&mut driver, &mut task]);
        assert!(driver.is_over());
        assert_eq!(task.done_at, Some(0));
        drop((task, timer));
        // If this driver were still a member, the thread would wait forever.
        join_watchdog();
    });
}

#[test]
fn without_a_watchdog_tokios_clock_wakes_the_driver() {
    explore(3, || {
        refuse_threads();
        let (timer, driver) = start();
        let host = driver.run_on_thread(2);
        let mut task = Task::new(timer.sleep_until(at(5)));
        task.run();
        let mut driver = host.join().unwrap();
        settle(&mut [&mut driver, &mut task]);
        assert_eq!(task.done_at, Some(5));
        assert_eq!(books(&timer), all_fired(1));
    });
}

// ----- a driver that tokio's clock wakes, with the thread behind it -----

/// The delays after a target at which the thread looks at a watched driver, and at a closely watched or recently late one.
const LAZY: u64 = 50;
const CLOSE: u64 = 8;

/// No worker turns tokio's clock, as when the one that waits on it has blocked.
fn is_woken_late(waking: Waking, at_most: u64) {
    let (timer, driver) = start_with(waking);
    let host = run(driver);
    let mut task = Task::new(timer.sleep_until(at(5)));
    task.run();
    move_clock_for_thread(5 + at_most);
    task.block_on();
    assert_eq!(task.done_at, Some(5 + at_most));
    assert_eq!(books(&timer), all_fired(1));
    end((task, timer), host);
}

#[test]
fn the_thread_wakes_a_driver_that_tokios_clock_does_not() {
    explore(2, || is_woken_late(Waking::Watched, LAZY));
}

#[test]
fn the_thread_wakes_a_closely_watched_driver_sooner() {
    explore(2, || is_woken_late(Waking::WatchedClosely, CLOSE));
}

/// The second target is earlier, so the look that the thread has planned is too late for it.
#[test]
fn a_target_lowered_as_the_thread_goes_to_sleep_is_guarded() {
    explore(2, || {
        let (timer, mut driver) = start_with(Waking::Watched);
        let mut late = Task::new(timer.sleep_until(at(1_000)));
        // The watchdog thread is started here.
        settle_until_asleep(&mut [&mut late, &mut driver]);
        let mut early = Task::new(timer.sleep_until(at(5)));
        early.run();
        let host = run(driver);
        move_clock_for_thread(5 + LAZY);
        early.block_on();
        assert_eq!(early.done_at, Some(5 + LAZY));
        end((early, late, timer), host);
    });
}

/// The target is lowered at any moment of what the thread and the driver do next.
#[test]
fn a_driver_that_was_late_is_looked_at_closely() {
    explore(2, || {
        let (timer, mut driver) = start_with(Waking::Watched);
        let mut first = Task::new(timer.sleep_until(at(5)));
        let mut far = Task::new(timer.sleep_until(at(1_000)));
        settle_until_asleep(&mut [&mut first, &mut far, &mut driver]);
        let host = run(driver);
        move_clock_for_thread(5 + LAZY);
        first.block_on();
        let mut second = Task::new(timer.sleep_until(at(60)));
        second.run();
        move_clock_for_thread(60 + CLOSE);
        second.block_on();
        assert_eq!(second.done_at, Some(60 + CLOSE));
        end((first, second, far, timer), host);
    });
}

#[test]
fn the_thread_lets_a_driver_be_that_tokios_clock_wakes() {
    explore(2, || {
        let (timer, mut driver) = start_with(Waking::Watched);
        let mut task = Task::new(timer.sleep_until(at(5)));
        settle_until_asleep(&mut [&mut task, &mut driver]);
        // The first turn, by a worker. It leaves a later target.
        let mut late = Task::new(timer.sleep_until(at(100)));
        late.run();
        set_clock(5);
        turn_tokios_clock();
        task.block_on();
        assert_eq!(task.done_at, Some(5));
        move_clock_for_thread(5 + LAZY);
        // The thread has looked, or will: there is nothing to be woken for.
        assert!(!driver.run());
        let host = run(driver);
        move_clock_for_thread(100 + LAZY);
        late.block_on();
        end((task, late, timer), host);
    });
}

/// The thread still runs, is about to end, or has ended.
#[test]
fn a_driver_that_joins_as_the_last_one_leaves_is_woken() {
    explore(2, || {
        let (first, mut first_driver) = start();
        let mut task = Task::new(first.sleep_until(at(10)));
        // The watchdog thread is started here, for this driver.
        settle_until_asleep(&mut [&mut task, &mut first_driver]);
        let (second, mut second_driver) = start();
        let owner = spawn_thread(move || {
            drop((task, first));
            settle_until_asleep(&mut [&mut first_driver]);
            assert!(first_driver.is_over());
        });
        let mut task = Task::new(second.sleep_until(at(5)));
        settle_until_asleep(&mut [&mut task, &mut second_driver]);
        owner.join().unwrap();
        move_clock_for_thread(5);
        // By hand: loom has no more threads than this model uses.
        second_driver.run_until(|| task.flag().wakes() > 0);
        assert!(task.poll());
        drop((task, second));
        second_driver.run_until(|| false);
        assert!(second_driver.is_over());
        join_watchdog();
    });
}
