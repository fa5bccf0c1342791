//! Insertions from other tasks and threads.

use std::task::Poll;
use std::thread;

use waterwheel::delay_queue::Closed;
use waterwheel::{DelayQueue, Instant};

use crate::support::{HOUR, LIMIT, Probe, ms, multi_thread, own_timer, us, within};
use crate::{next, poll};

#[tokio::test(start_paused = true)]
async fn a_handle_does_what_the_queue_does() {
    let mut queue = DelayQueue::new();
    // Items from before the first handle stay.
    let first = queue.insert("first", ms(30));
    let handle = queue.handle().clone();
    let second = handle.insert("second", ms(10)).unwrap();
    let third = handle.insert_at("third", Instant::now() + ms(20)).unwrap();
    assert_eq!(
        (queue.len(), handle.len(), handle.is_empty()),
        (3, 3, false)
    );
    assert_eq!(handle.try_deadline(&first), Some(queue.deadline(&first)));
    assert!(handle.try_reset(&first, ms(5)));
    assert_eq!(handle.try_remove(&second).unwrap().into_inner(), "second");
    assert!(handle.try_remove(&second).is_none());
    assert!(!handle.try_reset(&second, ms(1)) && handle.try_deadline(&second).is_none());
    tokio::time::advance(ms(20)).await;
    assert_eq!(next(&mut queue), Some("first"));
    assert!(
        handle.try_reset_at(&third, Instant::now() + ms(1)),
        "due, and not handed out"
    );
    assert!(poll(&mut queue, &Probe::new()).is_pending());
}

#[tokio::test(start_paused = true)]
async fn an_empty_queue_with_a_handle_waits_for_items() {
    let mut queue = DelayQueue::new();
    let handle = queue.handle();
    let probe = Probe::new();
    assert!(poll(&mut queue, &probe).is_pending());
    let key = handle.insert((), ms(5)).unwrap();
    assert_eq!(probe.wakes(), 1);
    assert!(poll(&mut queue, &probe).is_pending());
    handle.try_remove(&key).unwrap();
    queue.clear();
    assert!(poll(&mut queue, &probe).is_pending());
    assert_eq!(probe.wakes(), 1, "nothing to see for the task");
    let clone = handle.clone();
    drop(handle);
    assert_eq!(probe.wakes(), 1);
    drop(clone);
    assert_eq!(probe.wakes(), 2, "the last handle");
    assert!(matches!(poll(&mut queue, &probe), Poll::Ready(None)));
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_of_a_queue_with_items_ends_nothing() {
    let mut queue = DelayQueue::new();
    let handle = queue.handle();
    handle.insert(1, ms(5)).unwrap();
    let probe = Probe::new();
    assert!(poll(&mut queue, &probe).is_pending());
    drop(handle);
    assert_eq!(probe.wakes(), 0);
    let mut batch = Vec::new();
    assert_eq!(queue.expired_many(&mut batch, 9).await, 1);
    assert_eq!(queue.expired_many(&mut batch, 9).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_handle_of_a_queue_that_was_dropped_gives_the_value_back() {
    let mut queue = DelayQueue::new();
    let handle = queue.handle();
    let key = handle.insert("dropped", HOUR).unwrap();
    let probe = Probe::new();
    assert!(poll(&mut queue, &probe).is_pending());
    drop(queue);
    assert_eq!(probe.held(), 0);
    assert_eq!(handle.insert("back", ms(1)), Err(Closed("back")));
    assert!(handle.is_empty() && handle.try_remove(&key).is_none());
    let error = handle.insert("back", ms(1)).unwrap_err();
    assert!(error.to_string().contains("dropped"), "{error}");
}

// Neither the end of the timer nor that of all items closes the handles: only the end of the queue does.
#[tokio::test]
async fn a_handle_is_closed_once_its_queue_was_dropped() {
    let timer = own_timer();
    let mut queue = DelayQueue::on(&timer);
    let handle = queue.handle();
    let clone = handle.clone();
    queue.insert(1, HOUR);
    queue.clear();
    timer.shutdown();
    assert!(
        poll(&mut queue, &Probe::new()).is_ready(),
        "the timer was stopped"
    );
    assert!(!handle.is_closed() && handle.insert(2, HOUR).is_ok());
    let elsewhere = thread::spawn(move || (clone.is_closed(), clone));
    let (was_closed, clone) = elsewhere.join().unwrap();
    assert!(!was_closed);
    drop(queue);
    assert!(handle.is_closed() && clone.is_closed());
    assert_eq!(handle.insert(3, HOUR), Err(Closed(3)));
    assert!(handle.is_closed() && handle.clone().is_closed());
}

#[test]
fn threads_insert_and_remove_while_a_task_takes_items_out() {
    const EACH: usize = 2_000;
    within(LIMIT * 3, || {
        multi_thread(2).block_on(async {
            let mut queue = DelayQueue::new();
            let handle = queue.handle();
            let producers: Vec<_> = (0..3)
                .map(|producer| {
                    let handle = handle.clone();
                    thread::spawn(move || {
                        let mut removed = 0;
                        for n in 0..EACH {
                            let delay = us((n * 37 % 3_000) as u64);
                            let key = handle.insert((producer, n), delay).unwrap();
                            handle.insert((producer, n), delay * 2).unwrap();
                            if n % 3 == 0 {
                                handle.try_reset(&key, us(500));
                            } else if n % 3 == 1 {
                                removed += usize::from(handle.try_remove(&key).is_some());
                            }
                        }
                        removed
                    })
                })
                .collect();
            drop(handle);
            let task = tokio::spawn(async move {
                let (mut batch, mut got) = (Vec::new(), 0);
                loop {
                    let count = queue.expired_many(&mut batch, 64).await;
                    if count == 0 {
                        return got;
                    }
                    let now = Instant::now();
                    for expired in batch.drain(..) {
                        assert!(expired.deadline() <= now, "early");
                    }
                    got += count;
                }
            });
            let got = task.await.unwrap();
            let removed: usize = producers.into_iter().map(|it| it.join().unwrap()).sum();
            assert_eq!(got + removed, 3 * 2 * EACH);
        });
    });
}
