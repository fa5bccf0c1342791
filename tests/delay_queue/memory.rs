//! Capacity for items: reserved, kept, released.

use std::sync::Arc;

use waterwheel::DelayQueue;

use crate::support::{HOUR, assert_panics_here, ms, own_timer, paused};

#[tokio::test(start_paused = true)]
async fn clearing_keeps_the_memory() {
    for with_handle in [false, true] {
        let mut queue = DelayQueue::with_capacity(1_000);
        let handle = with_handle.then(|| queue.handle());
        let value = Arc::new(());
        for n in 0..1_000 {
            queue.insert(Arc::clone(&value), ms(n));
        }
        let capacity = queue.capacity();
        queue.clear();
        assert_eq!(Arc::strong_count(&value), 1);
        assert_eq!((queue.len(), queue.capacity()), (0, capacity));
        queue.insert(Arc::clone(&value), ms(1));
        assert_eq!(queue.capacity(), capacity);
        drop(handle);
    }
}

#[tokio::test(start_paused = true)]
async fn compact_gives_back_what_lies_behind_the_last_item() {
    let mut queue = DelayQueue::new();
    let keys: Vec<_> = (0..1_000).map(|n| queue.insert(n, HOUR)).collect();
    for key in &keys[100..] {
        queue.remove(key);
    }
    queue.compact();
    assert!((100..1_000).contains(&queue.capacity()));
    assert_eq!(queue.remove(&keys[99]).into_inner(), 99);
    queue.shrink_to_fit();
    assert_eq!(queue.deadline(&keys[0]), queue.deadline(&keys[98]));
    queue.reserve(5_000);
    assert!(queue.capacity() >= 5_099);
    drop(queue.drain());
    assert_eq!((queue.len(), queue.capacity()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_dropped_drops_its_items() {
    for with_handle in [false, true] {
        let value = Arc::new(());
        let mut queue = DelayQueue::new();
        let handle = with_handle.then(|| queue.handle());
        queue.insert(Arc::clone(&value), HOUR);
        let drained = queue.drain();
        assert_eq!(Arc::strong_count(&value), 2);
        drop(drained);
        queue.insert(Arc::clone(&value), HOUR);
        drop(queue);
        assert_eq!(Arc::strong_count(&value), 1, "{handle:?}");
    }
}

// A queue that is not on a timer yet allocates at the first insertion. It must not panic only then.
#[test]
fn room_for_more_than_a_queue_holds_is_refused_at_once() {
    const TOO_MANY: usize = u32::MAX as usize;
    let says = &["2^32", "spread them over several"];
    assert_panics_here(says, || DelayQueue::<u8>::with_capacity(TOO_MANY));
    assert_panics_here(says, || DelayQueue::<u8>::with_capacity(usize::MAX));
    assert_panics_here(says, || DelayQueue::<u8>::new().reserve(TOO_MANY));
    type Huge = [u8; usize::MAX >> 20];
    let says = &["isize::MAX", "ask for less"];
    assert_panics_here(says, || DelayQueue::<Huge>::with_capacity(1 << 21));
    let mut queue = DelayQueue::<u8>::with_capacity(10);
    assert_panics_here(&["2^32"], || queue.reserve(TOO_MANY));
    assert_eq!(queue.capacity(), 10, "as before");
    paused().block_on(async {
        queue.insert(0, HOUR);
        assert_panics_here(&["2^32"], || queue.reserve(TOO_MANY));
        assert_panics_here(&["2^32"], || queue.reserve(usize::MAX));
        let mut queue = DelayQueue::<Huge>::on(&own_timer());
        assert_panics_here(says, || queue.reserve(1 << 21));
    });
}
