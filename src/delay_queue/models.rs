//! The owner's poll under loom, concurrent with a handle on another thread, and with a stop of the timer, in every order.
//!
//! A task is polled only when it was woken, and the clock goes from one deadline that the timer knows to the next. So an item whose task was
//! not woken never comes out.
//!
//! Broken by hand, each seen to fail:
//!
//! | broken | seen by |
//! |---|---|
//! | what is filed for an earlier tick wakes no task; a poll does not set `waits_for` | an item that comes or moves before the others |
//! | a poll that finds no item leaves `waits_for` as it was | the first item of an empty queue |
//! | a poll does not look again when it has stored its waker | all |
//! | the last handle wakes no task | the end of the last handle |
//! | `Shard::await_stop` keeps no waker; `Sleep::poll_stop` goes on after a stop | a stop while it waits for its handles |

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::time::Duration;

use super::{DelayQueue, Expired, Handle};
use crate::clock::ManualClock;
use crate::driver::Timer;
use crate::driver::models::host::spawn_thread;
use crate::driver::models::world::{Run, Task, explore, start_by_hand};

/// Waits for the next item, and keeps what it got.
struct Next {
    queue: DelayQueue<u64>,
    got: Option<Result<u64, End>>,
}

#[derive(Debug, PartialEq)]
enum End {
    NoHandle,
    Stopped,
}

impl Future for Next {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let due = ready!(self.queue.poll_expired(context));
        let got = due.map(Expired::into_inner);
        self.got = Some(got.ok_or(match self.queue.was_stopped() {
            true => End::Stopped,
            false => End::NoHandle,
        }));
        Poll::Ready(())
    }
}

/// Polls a queue that holds these items while another thread does something with its handle. Then the task must get what is expected, at the
/// first deadline if there is one, by the wakes that it got. Whether the other thread woke it is the outcome, and both must come up.
fn while_it_is_polled(
    items: &'static [u64],
    meanwhile: fn(&Timer, Handle<u64>) -> Option<Handle<u64>>,
    expected: Result<u64, End>,
) {
    let expected = Arc::new(expected);
    let outcomes = explore(3, move || {
        let clock = ManualClock::new();
        let timer = start_by_hand(&clock);
        let mut queue = DelayQueue::on(&timer);
        for &item in items {
            queue.insert(item, Duration::from_millis(item));
        }
        let handle = queue.handle();
        let mut task = Task::new(Next { queue, got: None });
        let others = timer.clone();
        let other = spawn_thread(move || meanwhile(&others, handle));
        task.run();
        let handle = other.join().unwrap();
        let was_woken = task.run();
        if let Ok(item) = *expected {
            let due = clock.now() + Duration::from_millis(item);
            assert_eq!(clock.advance_to_next(), Some(due));
            task.run();
        }
        assert_eq!(task.future.got.as_ref(), Some(&*expected));
        drop(handle);
        was_woken
    });
    assert_eq!(outcomes, [false, true].into());
}

#[test]
fn an_item_before_the_others_is_not_missed() {
    let insert = |_: &Timer, handle: Handle<u64>| {
        handle.insert(5, Duration::from_millis(5)).unwrap();
        Some(handle)
    };
    while_it_is_polled(&[20], insert, Ok(5));
}

#[test]
fn an_item_that_moves_before_the_others_is_not_missed() {
    let reset = |_: &Timer, handle: Handle<u64>| {
        let key = handle.insert(5, Duration::from_millis(30)).unwrap();
        assert!(handle.try_reset(&key, Duration::from_millis(5)));
        Some(handle)
    };
    while_it_is_polled(&[20], reset, Ok(5));
}

#[test]
fn the_first_item_of_an_empty_queue_is_not_missed() {
    let insert = |_: &Timer, handle: Handle<u64>| {
        handle.insert(5, Duration::from_millis(5)).unwrap();
        Some(handle)
    };
    while_it_is_polled(&[], insert, Ok(5));
}

#[test]
fn the_end_of_the_last_handle_is_not_missed() {
    while_it_is_polled(&[], |_, _| None, Err(End::NoHandle));
}

#[test]
fn a_stop_while_the_queue_waits_for_its_handles_is_not_missed() {
    let stop = |timer: &Timer, handle| {
        timer.shutdown();
        Some(handle)
    };
    while_it_is_polled(&[], stop, Err(End::Stopped));
}

#[test]
fn a_stop_while_the_queue_waits_for_an_item_is_not_missed() {
    let stop = |timer: &Timer, handle| {
        timer.shutdown();
        Some(handle)
    };
    while_it_is_polled(&[20], stop, Err(End::Stopped));
}
