//! A manual clock that is advanced, and futures that arm, move and cancel meanwhile. No driver takes part: what an advance misses
//! is lost.

use tokio::time::Duration;

use super::host::spawn_thread;
use super::world::{Run, Task, all_fired, books, explore, start_by_hand};
use crate::clock::ManualClock;
use crate::error::AdvanceError;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Advances the clock by 10 ms on another thread while `meanwhile` is done with a sleep, in every order. Then the sleep must be ready as soon as it is
/// polled for the wakes that it got. Whether it was pending when the advance was over is the outcome.
fn while_it_advances(
    deadline: Duration,
    is_armed: bool,
    meanwhile: fn(&mut Task<crate::Sleep>, ManualClock),
) {
    let outcomes = explore(3, move || {
        let clock = ManualClock::new();
        let timer = start_by_hand(&clock);
        let mut task = Task::new(timer.sleep(deadline));
        if is_armed {
            task.run();
        }
        let advancing = clock.clone();
        let advances = spawn_thread(move || advancing.advance(ms(10)));
        meanwhile(&mut task, clock);
        let was_ready = task.done_at.is_some();
        advances.join().unwrap();
        task.run();
        assert!(task.done_at.is_some(), "lost: no wake came for it");
        assert!(task.flag().is_let_go());
        let books = books(&timer);
        assert_eq!(books, all_fired(books.armed));
        was_ready
    });
    assert_eq!(outcomes, [false, true].into());
}

#[test]
fn what_is_armed_while_the_clock_advances_over_it_is_woken() {
    while_it_advances(ms(5), false, |task, _| {
        task.run();
    });
}

#[test]
fn what_moves_to_earlier_while_the_clock_advances_is_woken() {
    while_it_advances(ms(20), true, |task, clock| {
        let deadline = task.future.deadline() - ms(15);
        task.future.set_deadline(deadline);
        // Only to see both orders: whether the clock is there already.
        if clock.now() >= deadline {
            task.run();
        }
    });
}

#[test]
fn what_is_polled_with_another_waker_meanwhile_is_woken() {
    while_it_advances(ms(5), true, |task, _| {
        task.change_flag();
        task.run();
    });
}

/// The deadline's cell is written without the lock, and the advance goes beyond the new deadline as well.
#[test]
fn what_is_postponed_while_the_clock_advances_is_woken() {
    explore(3, || {
        let clock = ManualClock::new();
        let timer = start_by_hand(&clock);
        let mut task = Task::new(timer.sleep(ms(5)));
        task.run();
        let advancing = clock.clone();
        let advances = spawn_thread(move || advancing.advance(ms(10)));
        let deadline = task.future.deadline() + ms(3);
        task.future.set_deadline(deadline);
        advances.join().unwrap();
        task.run();
        assert!(task.done_at.is_some(), "lost: no wake came for it");
        let books = books(&timer);
        assert_eq!(books, all_fired(books.armed));
    });
}

#[test]
fn of_two_advances_at_once_one_may_be_refused_and_none_is_lost() {
    let refused = explore(2, || {
        let clock = ManualClock::new();
        let timer = start_by_hand(&clock);
        let mut task = Task::new(timer.sleep(ms(5)));
        task.run();
        let start = clock.now();
        let other = clock.clone();
        let advances = spawn_thread(move || other.try_advance(ms(10)));
        let mine = clock.try_advance(ms(10));
        let theirs = advances.join().unwrap();
        let refused = [mine, theirs].into_iter().filter_map(Result::err);
        let refused: Vec<AdvanceError> = refused.collect();
        assert!(refused.iter().all(AdvanceError::is_advancing));
        let advanced = 2 - refused.len() as u32;
        assert_eq!(clock.now(), start + ms(10) * advanced);
        task.run();
        assert!(task.done_at.is_some());
        refused.len()
    });
    assert_eq!(refused, [0, 1].into());
}

/// The clock goes to a deadline, whether the timer there is fired by the advance or by a poll of its future.
#[test]
fn a_poll_beside_the_next_advance_skips_no_deadline() {
    let by_polls = explore(3, || {
        let clock = ManualClock::new();
        let timer = start_by_hand(&clock);
        let [mut first, mut second] = [5, 9].map(|millis| Task::new(timer.sleep(ms(millis))));
        first.run();
        second.run();
        let start = clock.now();
        let advancing = clock.clone();
        let advances = spawn_thread(move || advancing.advance_to_next());
        let is_ready_by_poll = first.poll();
        assert_eq!(advances.join().unwrap(), Some(start + ms(5)));
        assert_eq!(clock.now(), start + ms(5));
        first.run();
        assert!(first.done_at.is_some() && second.done_at.is_none());
        // Only two were left: the next deadline is the other one's, and then there is none.
        assert_eq!(clock.advance_to_next(), Some(start + ms(9)));
        second.run();
        assert_eq!(clock.advance_to_next(), None);
        assert_eq!(books(&timer), all_fired(2));
        is_ready_by_poll
    });
    assert_eq!(by_polls, [false, true].into());
}
