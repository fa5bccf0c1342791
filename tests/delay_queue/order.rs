//! Ticks come in order, and the items of one tick first in, first out.

use waterwheel::{DelayQueue, Duration, Instant};

use crate::support::{Dice, Probe, ms, us};
use crate::{all_due, next, poll};

#[tokio::test(start_paused = true)]
async fn items_of_one_tick_come_first_in_first_out() {
    let mut queue = DelayQueue::new();
    let due = Instant::now() + ms(1_500);
    for n in 0..100 {
        queue.insert_at(n, due);
    }
    // The slot of their second comes up in between.
    tokio::time::advance(ms(1_200)).await;
    assert!(poll(&mut queue, &Probe::new()).is_pending());
    for n in 100..200 {
        queue.insert_at(n, due - us(n));
    }
    tokio::time::advance(ms(300)).await;
    assert_eq!(all_due(&mut queue), Vec::from_iter(0..200));
}

// More than a batch cascades from one minute. Handing the slot over in parts must neither lose nor reorder any.
#[tokio::test(start_paused = true)]
async fn a_crowd_in_one_slot_of_the_minutes_comes_in_order() {
    const CROWD: u64 = 5_000;
    for most in [1, 64, 10_000] {
        let mut queue = DelayQueue::new();
        let start = Instant::now();
        // The third minute from now, in any order, with three ticks for every four items.
        let delay = |n: u64| ms(180_000 + n * 7_919 % CROWD * 3 / 4);
        for n in 0..CROWD {
            queue.insert_at(n, start + delay(n));
        }
        let mut expected = Vec::from_iter(0..CROWD);
        expected.sort_by_key(|&n| delay(n));
        let (mut batch, mut came) = (Vec::new(), Vec::new());
        while queue.expired_many(&mut batch, most).await > 0 {
            let now = Instant::now();
            for expired in batch.drain(..) {
                assert_eq!(expired.deadline(), now, "at its tick");
                came.push(expired.into_inner());
            }
        }
        assert_eq!(came, expected, "{most} at a time");
    }
}

// The clock jumps over the whole crowd: it cascades and comes up at once.
#[tokio::test(start_paused = true)]
async fn a_crowd_that_is_late_as_a_whole_comes_in_order() {
    const CROWD: u64 = 5_000;
    let mut queue = DelayQueue::new();
    let handle = queue.handle();
    for n in (0..CROWD).rev() {
        queue.insert(n, ms(180_000 + n / 2 * 2));
    }
    tokio::time::advance(ms(200_000)).await;
    handle.insert(CROWD, ms(0)).unwrap();
    tokio::time::advance(ms(1)).await;
    let mut expected = Vec::from_iter((0..CROWD).rev());
    expected.sort_by_key(|n| n / 2);
    expected.push(CROWD);
    assert_eq!(all_due(&mut queue), expected);
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn earlier_ticks_come_first_whatever_the_order_of_insertion() {
    let mut queue = DelayQueue::new();
    let start = Instant::now();
    let mut dice = Dice(7);
    let mut delays: Vec<u64> = (0..2_000).map(|_| dice.any_magnitude(1 << 33)).collect();
    for &delay in &delays {
        queue.insert_at(delay, start + ms(delay));
    }
    tokio::time::advance(ms(1 << 33)).await;
    delays.sort_unstable();
    assert_eq!(all_due(&mut queue), delays);
    assert_eq!(next(&mut queue), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_due_when_inserted_comes_after_what_was_due() {
    let start = Instant::now();
    tokio::time::advance(ms(20)).await;
    let mut queue = DelayQueue::new();
    queue.insert_at("first", start + ms(10));
    queue.insert_at("second", start);
    assert_eq!(
        queue.peek().map(|key| queue.remove(&key).into_inner()),
        Some("first")
    );
    assert_eq!(next(&mut queue), Some("second"));
}

#[tokio::test(start_paused = true)]
async fn many_at_a_time_come_in_the_same_order() {
    let mut queue = DelayQueue::new();
    for n in (0..1_000).rev() {
        queue.insert(n, ms(n / 3));
    }
    tokio::time::advance(ms(200)).await;
    let mut batch = Vec::new();
    assert_eq!(queue.expired_many(&mut batch, 0).await, 0);
    assert_eq!(queue.expired_many(&mut batch, 250).await, 250);
    assert_eq!(queue.expired_many(&mut batch, usize::MAX).await, 353);
    // The rest is due later, so the queue waits for it.
    while queue.expired_many(&mut batch, 7).await > 0 {}
    let values = batch.iter().map(|expired| *expired.get_ref());
    let mut expected = Vec::from_iter((0..1_000).rev());
    expected.sort_by_key(|n| n / 3);
    assert_eq!(Vec::from_iter(values), expected);
    assert_eq!(queue.expired_many(&mut batch, 1).await, 0, "the end");
}

#[tokio::test(start_paused = true)]
async fn no_item_is_early_by_a_microsecond() {
    for micros in [1, 999, 1_000, 1_001, 999_999, 1_000_000, 61_000_001] {
        let mut queue = DelayQueue::new();
        let deadline = Instant::now() + us(micros);
        queue.insert_at((), deadline);
        tokio::time::advance(Duration::from_micros(micros) - us(1)).await;
        assert!(poll(&mut queue, &Probe::new()).is_pending(), "{micros} µs");
        let expired = queue.expired_many(&mut Vec::new(), 1).await;
        assert!(expired == 1 && Instant::now() >= deadline, "{micros} µs");
    }
}

// The queue's time is that of the last item that it returned, or of the last poll that found nothing due.
#[tokio::test(start_paused = true)]
async fn ticks_that_polls_have_passed_are_first_in_first_out() {
    let mut queue = DelayQueue::new();
    let start = Instant::now();
    let insert = |queue: &mut DelayQueue<u64>, ticks: &[u64]| {
        for &n in ticks {
            queue.insert_at(n, start + ms(n));
        }
    };
    insert(&mut queue, &[10, 15, 20]);
    tokio::time::advance(ms(30)).await;
    assert_eq!(next(&mut queue), Some(10));
    insert(&mut queue, &[12, 5, 30, 19, 4]);
    assert_eq!(all_due(&mut queue), [5, 4, 12, 15, 19, 20, 30]);
    // After a poll that found nothing, its time is 30.
    insert(&mut queue, &[12, 5, 30, 19]);
    tokio::time::advance(ms(1)).await;
    insert(&mut queue, &[31, 6]);
    assert_eq!(all_due(&mut queue), [12, 5, 30, 19, 6, 31]);
}
