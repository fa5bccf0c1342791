//! A key names its item until that is gone, and nothing afterwards.

use std::task::Poll;

use waterwheel::delay_queue::Key;
use waterwheel::{DelayQueue, Instant};

use crate::support::{Probe, assert_panics_here, ms, paused};
use crate::{all_due, next, poll};

#[track_caller]
fn assert_stale(queue: &mut DelayQueue<&str>, key: &Key) {
    let len = queue.len();
    assert!(queue.try_remove(key).is_none());
    assert!(queue.try_deadline(key).is_none());
    assert!(!queue.try_reset(key, ms(1)));
    assert!(!queue.try_reset_at(key, Instant::now()));
    let advice = ["no item of this queue", "handed out, removed or cleared"];
    assert_panics_here(&[advice[0], advice[1], "`try_remove`"], || {
        queue.remove(key)
    });
    assert_panics_here(&["`try_reset`"], || queue.reset(key, ms(1)));
    assert_panics_here(&["`try_reset_at`"], || queue.reset_at(key, Instant::now()));
    assert_panics_here(&["`try_deadline`"], || queue.deadline(key));
    assert_eq!(queue.len(), len);
}

// In tokio-util's queue, the key of a removed item names the next item at the same place.
#[tokio::test(start_paused = true)]
async fn a_stale_key_names_no_later_item() {
    let mut queue = DelayQueue::new();
    let mut stale = Vec::new();
    for round in 0..12 {
        let key = queue.insert("item", ms(5));
        stale.iter().for_each(|key| assert_stale(&mut queue, key));
        match round % 4 {
            0 => assert_eq!(queue.remove(&key).into_inner(), "item"),
            1 => queue.clear(),
            2 => assert_eq!(queue.drain().count(), 1),
            _ => {
                tokio::time::advance(ms(5)).await;
                assert_eq!(next(&mut queue), Some("item"));
            }
        }
        queue.insert("later", ms(50));
        assert_stale(&mut queue, &key);
        stale.push(key);
        queue.clear();
    }
}

// Two queues count generations in the same way, so their keys may be equal. Keys that differ are never confused.
#[tokio::test(start_paused = true)]
async fn a_key_of_another_queue_that_differs_names_no_item() {
    let (mut one, mut other) = (DelayQueue::new(), DelayQueue::new());
    let other_handle = other.handle();
    // Each place of the other queue has had more items, so its generations differ.
    for _ in 0..3 {
        other.insert("gone", ms(5));
        other.insert("gone", ms(5));
        other.clear();
    }
    let ours = ["a", "b", "c"].map(|name| one.insert(name, ms(5)));
    let theirs = ["x", "y", "z"].map(|name| other.insert(name, ms(5)));
    for foreign in ours {
        assert!(!theirs.contains(&foreign));
        assert_stale(&mut other, &foreign);
        assert!(other_handle.try_remove(&foreign).is_none());
        assert!(!other_handle.try_reset(&foreign, ms(1)));
        assert!(other_handle.try_deadline(&foreign).is_none());
    }
    theirs.iter().for_each(|key| assert_stale(&mut one, key));
    // The same generation at another place.
    let mut third = DelayQueue::new();
    let places = ["p", "q"].map(|name| third.insert(name, ms(5)));
    let mut fourth = DelayQueue::new();
    let gone = fourth.insert("gone", ms(5));
    fourth.remove(&gone);
    let second = fourth.insert("second", ms(5));
    assert_ne!(second, places[1]);
    assert_stale(&mut third, &second);
    assert_stale(&mut fourth, &places[1]);
    tokio::time::advance(ms(5)).await;
    assert_eq!(all_due(&mut other), ["x", "y", "z"]);
    assert_eq!(all_due(&mut one), ["a", "b", "c"]);
}

#[test]
fn a_queue_without_a_timer_yet_takes_every_key_for_stale() {
    let mut other = DelayQueue::new();
    let key = paused().block_on(async { other.insert("item", ms(1)) });
    assert_stale(&mut DelayQueue::new(), &key);
}

#[tokio::test(start_paused = true)]
async fn what_is_due_is_removed_and_reset_by_its_key() {
    let mut queue = DelayQueue::new();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| queue.insert(name, ms(5)));
    tokio::time::advance(ms(7)).await;
    assert_eq!(next(&mut queue), Some("a"));
    assert_eq!(queue.len(), 3);
    assert_stale(&mut queue, &a);
    assert_eq!(queue.remove(&b).into_inner(), "b");
    queue.reset(&c, ms(5));
    assert_eq!(next(&mut queue), Some("d"));
    assert_stale(&mut queue, &d);
    assert!(poll(&mut queue, &Probe::new()).is_pending());
    tokio::time::advance(ms(5)).await;
    assert_eq!(next(&mut queue), Some("c"));
    assert_eq!(next(&mut queue), None);
}

#[tokio::test(start_paused = true)]
async fn an_expired_item_has_its_key_and_its_deadline() {
    let mut queue = DelayQueue::new();
    let start = Instant::now();
    let key = queue.insert_at(1, start + ms(5));
    assert_eq!(queue.deadline(&key), start + ms(5));
    queue.reset_at(&key, start + ms(8));
    assert_eq!(queue.try_deadline(&key), Some(start + ms(8)));
    // Rounded up to a tick.
    queue.reset_at(&key, start + ms(8) + crate::support::us(1));
    assert_eq!(queue.deadline(&key), start + ms(9));
    tokio::time::advance(ms(20)).await;
    let Poll::Ready(Some(mut expired)) = poll(&mut queue, &Probe::new()) else {
        panic!("it is due");
    };
    *expired.get_mut() += 1;
    assert_eq!((expired.key(), expired.deadline()), (key, start + ms(9)));
    assert_eq!((*expired.get_ref(), expired.into_inner()), (2, 2));
    let again = queue.insert_at(3, start);
    let removed = queue.remove(&again);
    assert_eq!((removed.key(), removed.deadline()), (again, start));
}
