//! Deadlines at the end of time, and timers that end.

use std::task::Poll;

use waterwheel::error::Error;
use waterwheel::{DelayQueue, Duration, Instant, Timer};

use crate::support::{
    HOUR, LIMIT, Probe, assert_panics_here, block_on_within, bounded_timer, current_thread,
    end_of_time, ms, multi_thread, own_timer, paused, within,
};
use crate::{all_due, next, poll};

// tokio-util's queue panics from about two years on.
#[tokio::test(start_paused = true)]
async fn no_deadline_is_too_far() {
    let mut queue = DelayQueue::new();
    let handle = queue.handle();
    let year = HOUR * 24 * 365;
    let keys = [
        Duration::MAX,
        Duration::from_secs(1 << 60),
        year * 1_000,
        year * 3,
    ]
    .map(|timeout| queue.insert(timeout, timeout));
    queue.insert_at(Duration::MAX, end_of_time());
    handle.insert(Duration::MAX, Duration::MAX).unwrap();
    assert!(
        keys.iter()
            .all(|key| queue.deadline(key) > Instant::now() + year * 2)
    );
    queue.reset(&keys[1], Duration::MAX);
    queue.reset_at(&keys[0], end_of_time());
    assert!(handle.try_reset(&keys[1], Duration::MAX));
    assert!(poll(&mut queue, &Probe::new()).is_pending());
    tokio::time::advance(year * 4).await;
    assert_eq!(next(&mut queue), Some(year * 3));
    assert!(poll(&mut queue, &Probe::new()).is_pending());
    tokio::time::advance(year * 1_000).await;
    assert_eq!(next(&mut queue), Some(year * 1_000));
    assert_eq!(queue.len(), 4);
    let expired = queue.remove(&keys[0]);
    assert!(expired.deadline() > Instant::now() + year);
}

#[test]
fn a_timer_that_stops_ends_the_wait_and_leaves_the_items() {
    block_on_within(current_thread(), async || {
        let timer = own_timer();
        let mut queue = DelayQueue::on(&timer);
        let probe = Probe::new();
        let key = queue.insert_at("due", Instant::now() + ms(20));
        queue.insert("far", HOUR);
        assert!(poll(&mut queue, &probe).is_pending());
        assert!(!queue.was_stopped());
        timer.shutdown();
        assert_eq!(probe.wakes(), 1);
        if let Poll::Ready(None) = poll(&mut queue, &probe) {
            assert!(queue.was_stopped());
        }
        let due = queue.try_deadline(&key);
        while due.is_some_and(|due| Instant::now() < due + ms(2)) {
            tokio::task::yield_now().await;
        }
        assert_eq!(next(&mut queue), Some("due"), "past its tick");
        assert_eq!(next(&mut queue), None);
        assert_eq!(next(&mut queue), None);
        assert!(queue.was_stopped() && !queue.is_empty());
        queue.insert("also", HOUR);
        let mut left = Vec::from_iter(queue.drain());
        left.sort_unstable();
        assert_eq!(left, ["also", "far"]);
    });
}

#[test]
fn a_queue_that_waits_for_its_handles_ends_with_its_timer() {
    block_on_within(current_thread(), async || {
        for is_emptied in [false, true] {
            let timer = own_timer();
            let mut queue = DelayQueue::on(&timer);
            let handle = queue.handle();
            let probe = Probe::new();
            if is_emptied {
                let key = handle.insert("removed", HOUR).unwrap();
                assert!(poll(&mut queue, &probe).is_pending());
                handle.try_remove(&key).unwrap();
            }
            assert!(poll(&mut queue, &probe).is_pending());
            assert!(poll(&mut queue, &probe).is_pending());
            assert_eq!((timer.metrics().pending(), queue.was_stopped()), (0, false));
            timer.shutdown();
            assert_eq!(probe.wakes(), 1);
            assert_eq!(next(&mut queue), None);
            assert!(queue.was_stopped());
            assert_eq!(next(&mut queue), None);
            handle.insert("late", HOUR).unwrap();
            assert_eq!((next(&mut queue), queue.len()), (None, 1));
        }
    });
}

#[test]
fn a_drain_does_not_wait_for_a_queue_without_items() {
    block_on_within(multi_thread(1), async || {
        let timer = own_timer();
        let mut queue = DelayQueue::on(&timer);
        let handle = queue.handle();
        let consumer = tokio::spawn(async move {
            let mut batch = Vec::new();
            while queue.expired_many(&mut batch, 9).await > 0 {}
            (batch.len(), queue.was_stopped())
        });
        handle.insert((), ms(1)).unwrap();
        while !handle.is_empty() {
            tokio::task::yield_now().await;
        }
        timer.drain().await;
        assert_eq!(consumer.await.unwrap(), (1, true));
    });
}

#[test]
fn a_runtime_that_ends_ends_the_wait_as_well() {
    within(LIMIT, || {
        for runtime in [current_thread(), multi_thread(1)] {
            let mut queue = DelayQueue::new();
            let probe = Probe::new();
            runtime.block_on(async {
                queue.insert("far", HOUR);
                assert!(poll(&mut queue, &probe).is_pending());
            });
            drop(runtime);
            assert_eq!(probe.wakes(), 1);
            assert_eq!(next(&mut queue), None);
            queue.insert_at("past", Instant::now() - ms(10));
            assert_eq!(next(&mut queue), Some("past"));
            assert_eq!(queue.len(), 1);
            queue.clear();
            let handle = queue.handle();
            assert_eq!(next(&mut queue), None, "no runtime, so no wait");
            assert!(queue.was_stopped());
            drop(handle);
        }
    });
}

#[test]
fn a_queue_is_made_outside_of_a_runtime() {
    let mut queue = DelayQueue::with_capacity(10);
    assert_eq!((queue.len(), queue.peek(), queue.capacity()), (0, None, 10));
    queue.reserve(20);
    queue.clear();
    queue.compact();
    assert_eq!((queue.capacity(), queue.drain().count()), (0, 0));
    queue.reserve(20);
    assert!(!queue.was_stopped());
    paused().block_on(async {
        queue.insert((), ms(1));
        assert!(queue.capacity() >= 20);
    });
    assert_panics_here(&["runtime"], || DelayQueue::new().insert((), ms(1)));
    assert_panics_here(&["runtime"], || DelayQueue::<()>::new().handle());
}

#[tokio::test]
async fn a_queue_on_a_timer_counts_as_one_of_its_futures() {
    let timer = bounded_timer(1);
    let queue = DelayQueue::<()>::on(&timer);
    let full = DelayQueue::<()>::try_on(&timer).expect_err("it is full");
    assert!(full.is_at_capacity());
    assert_panics_here(&["max_pending"], || DelayQueue::<()>::on(&timer));
    drop(queue);
    let mut queue = DelayQueue::on(&timer);
    for n in 0..100 {
        queue.insert(n, Duration::ZERO);
    }
    let mut batch = Vec::new();
    while batch.len() < 100 {
        assert!(queue.expired_many(&mut batch, 100).await > 0);
    }
    timer.shutdown();
    let stopped = DelayQueue::<()>::try_on(&timer).map(drop);
    assert_eq!(stopped, Err(Error::shutdown()));
}

// As the docs of `on` say: the place is taken from creation until a poll finds the queue empty, and while it waits for an item.
#[tokio::test(start_paused = true)]
async fn a_queue_that_waits_for_nothing_holds_no_permit() {
    let timer = bounded_timer(1);
    let is_free = || timer.try_sleep(HOUR).is_ok();
    let probe = Probe::new();
    let mut queue = DelayQueue::on(&timer);
    assert!(!is_free(), "made");
    queue.insert(1, ms(5));
    assert!(!is_free(), "with an item");
    let key = queue.insert(2, HOUR);
    assert!(poll(&mut queue, &probe).is_pending());
    assert!(!is_free(), "waits");
    tokio::time::advance(ms(5)).await;
    assert_eq!(next(&mut queue), Some(1));
    assert!(poll(&mut queue, &probe).is_pending());
    assert!(!is_free(), "waits for the next item");
    queue.remove(&key);
    assert_eq!(probe.wakes(), 2, "to be polled");
    assert_eq!(next(&mut queue), None);
    assert!(is_free(), "a poll has found it empty");
    // As with a sleep that is reset after it is done, the place is taken even if none is free.
    let other = timer.sleep(HOUR);
    queue.insert(3, HOUR);
    assert!(poll(&mut queue, &probe).is_pending());
    drop(other);
    assert!(!is_free(), "waits again");
    queue.clear();
    assert_eq!(next(&mut queue), None);
    assert!(is_free(), "cleared");
    queue.insert(4, HOUR);
    assert!(poll(&mut queue, &probe).is_pending());
    drop(queue);
    assert!(is_free(), "dropped");
}

#[tokio::test(start_paused = true)]
async fn an_empty_queue_gives_its_permit_back_at_a_poll() {
    let timer = bounded_timer(1);
    let is_free = || timer.try_sleep(HOUR).is_ok();
    for with_handle in [false, true] {
        let mut queue = DelayQueue::on(&timer);
        let handle = with_handle.then(|| queue.handle());
        assert!(!is_free());
        let waits = poll(&mut queue, &Probe::new()).is_pending();
        // With a handle, the queue waits for the next item.
        assert_eq!((waits, is_free()), (with_handle, !with_handle));
        // An item that was due at once was never waited for.
        queue.insert_at((), Instant::now() - ms(10));
        assert_eq!(next(&mut queue), Some(()));
        assert_eq!(is_free(), !with_handle);
        queue.insert((), HOUR);
        assert!(poll(&mut queue, &Probe::new()).is_pending());
        assert!(!is_free());
        drop((queue, handle));
        assert!(is_free());
    }
    let mut queue = DelayQueue::on(&timer);
    queue.insert_at((), Instant::now() - ms(10));
    assert_eq!(next(&mut queue), Some(()));
    assert!(!is_free(), "no poll has found it empty");
    drop(queue.drain());
    assert_eq!(next(&mut queue), None);
    assert!(is_free());
}

#[tokio::test(start_paused = true)]
async fn a_queue_has_the_ticks_of_its_timer() {
    let timer = Timer::builder().resolution(ms(100)).start().unwrap();
    tokio::time::advance(ms(30)).await;
    let mut queue = DelayQueue::on(&timer);
    let key = queue.insert("rounded", ms(10));
    assert_eq!(queue.deadline(&key), Instant::now() + ms(70));
    tokio::time::advance(ms(69)).await;
    assert!(all_due(&mut queue).is_empty());
    tokio::time::advance(ms(1)).await;
    assert_eq!(all_due(&mut queue), ["rounded"]);
}
