//! Destructors of values, and wakers, run without the queue's lock: they may use the queue by a handle.

use std::task::{Context, Poll, Waker};

use waterwheel::DelayQueue;
use waterwheel::delay_queue::Handle;

use crate::support::{
    HOUR, block_on_within, current_thread, ms, panic_of, waker_on_drop, waker_on_wake,
};

/// A value that looks at the queue and inserts into it when it is dropped.
struct Curious(Option<Handle<Curious>>);

impl Drop for Curious {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            let _ = handle.len();
            let _ = handle.insert(Curious(None), HOUR);
        }
    }
}

/// Asserts that a poll with this waker is pending.
fn waits<T>(queue: &mut DelayQueue<T>, waker: &Waker) {
    let mut context = Context::from_waker(waker);
    assert!(queue.poll_expired(&mut context).is_pending());
}

#[test]
fn a_value_may_use_its_queue_as_it_is_dropped() {
    block_on_within(current_thread(), async || {
        for way in 0..4 {
            let mut queue = DelayQueue::new();
            let handle = queue.handle();
            let key = queue.insert(Curious(Some(handle.clone())), HOUR);
            match way {
                0 => queue.clear(),
                1 => drop(queue.drain()),
                2 => drop(queue.remove(&key)),
                _ => {
                    drop(queue);
                    assert!(handle.is_empty());
                    continue;
                }
            }
            assert_eq!(queue.len(), 1, "way {way}");
        }
    });
}

#[test]
fn a_waker_may_use_the_queue_that_wakes_or_drops_it() {
    block_on_within(current_thread(), async || {
        let mut queue = DelayQueue::new();
        let handle = queue.handle();
        let acts = handle.clone();
        let waker = waker_on_wake(move || assert!(acts.insert("by the waker", HOUR).is_ok()));
        waits(&mut queue, &waker);
        handle.insert("wakes", HOUR).unwrap();
        assert_eq!(queue.len(), 2);
        // Another waker replaces this one, which then acts. The queue is empty: no sleep holds a clone.
        let mut queue = DelayQueue::new();
        let handle = queue.handle();
        let waker = waker_on_drop(move || assert!(handle.insert("by the drop", HOUR).is_ok()));
        waits(&mut queue, &waker);
        drop(waker);
        assert!(queue.is_empty());
        let noop = Waker::noop();
        waits(&mut queue, noop);
        assert_eq!(queue.len(), 1);
    });
}

#[tokio::test]
async fn a_value_that_panics_as_it_is_dropped_costs_no_order() {
    struct Bomb(bool);
    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 {
                std::panic::resume_unwind(Box::new("boom"));
            }
        }
    }
    for with_handle in [false, true] {
        let mut queue = DelayQueue::new();
        let handle = with_handle.then(|| queue.handle());
        let key = queue.insert(Bomb(true), HOUR);
        queue.insert(Bomb(false), HOUR);
        let panicked = panic_of(|| queue.clear());
        assert_eq!(panicked.message, "boom");
        assert!(queue.is_empty() && queue.try_remove(&key).is_none());
        queue.insert(Bomb(false), ms(0));
        assert_eq!(queue.expired_many(&mut Vec::new(), 1).await, 1);
        drop(handle);
    }
}

/// A value that inserts another one through a handle as it is dropped, and then may panic.
struct Unruly {
    handle: Handle<Unruly>,
    inserts: bool,
    panics: bool,
}

impl Drop for Unruly {
    fn drop(&mut self) {
        if self.inserts {
            let quiet = Unruly {
                handle: self.handle.clone(),
                inserts: false,
                panics: false,
            };
            // The queue may be gone. Then the value is returned, and dropped here.
            drop(self.handle.insert(quiet, ms(0)));
        }
        if self.panics {
            std::panic::resume_unwind(Box::new("unruly"));
        }
    }
}

// The others are dropped and insert nevertheless. Each may take the lock, so none runs while it is held.
#[test]
fn a_value_that_inserts_and_panics_stops_no_other() {
    block_on_within(current_thread(), async || {
        for way in 0..3 {
            let mut queue = DelayQueue::new();
            let handle = queue.handle();
            for n in 0..10 {
                let unruly = Unruly {
                    handle: handle.clone(),
                    inserts: true,
                    panics: n == 4,
                };
                queue.insert(unruly, HOUR);
            }
            let panicked = match way {
                0 => panic_of(|| queue.clear()),
                1 => panic_of(|| drop(queue.drain())),
                _ => {
                    assert_eq!(panic_of(|| drop(queue)).message, "unruly");
                    assert!(handle.is_closed() && handle.is_empty());
                    continue;
                }
            };
            assert_eq!(panicked.message, "unruly");
            assert_eq!(queue.len(), 10, "way {way}");
            let mut batch = Vec::new();
            while batch.len() < 10 {
                assert!(queue.expired_many(&mut batch, 10).await > 0);
            }
            assert!(queue.is_empty());
        }
    });
}

#[tokio::test]
async fn a_batch_keeps_what_was_there() {
    let mut queue = DelayQueue::new();
    queue.insert(1, ms(0));
    let mut batch = Vec::new();
    assert_eq!(queue.expired_many(&mut batch, 1).await, 1);
    queue.insert(2, HOUR);
    let noop = Waker::noop();
    let poll = queue.poll_expired_many(&mut Context::from_waker(noop), &mut batch, 8);
    assert_eq!((poll, batch.len()), (Poll::Pending, 1));
}
