//! The wakers that the queue calls, and when.

use std::task::Poll;

use tokio::task::yield_now;
use waterwheel::{DelayQueue, Instant};

use crate::support::{HOUR, Probe, ms};
use crate::{next, poll};

#[tokio::test(start_paused = true)]
async fn an_insertion_before_the_next_expiration_wakes_the_task() {
    let mut queue = DelayQueue::new();
    let probe = Probe::new();
    queue.insert("b", ms(100));
    assert!(poll(&mut queue, &probe).is_pending());
    queue.insert("c", ms(101));
    queue.insert("d", ms(100));
    assert_eq!(probe.wakes(), 0, "nothing is due sooner");
    queue.insert("a", ms(99));
    queue.insert("0", ms(1));
    assert_eq!(probe.wakes(), 1, "once");
    assert!(poll(&mut queue, &probe).is_pending());
    tokio::time::advance(ms(1)).await;
    assert_eq!(probe.wakes(), 2);
    assert_eq!(next(&mut queue), Some("0"));
}

#[tokio::test(start_paused = true)]
async fn an_insertion_into_an_empty_queue_wakes_the_task() {
    let mut queue = DelayQueue::new();
    let probe = Probe::new();
    assert!(matches!(poll(&mut queue, &probe), Poll::Ready(None)));
    let key = queue.insert("a", ms(5));
    assert_eq!(probe.wakes(), 1);
    // The tick is the same as before, after the sleep towards it was given up.
    let due = queue.deadline(&key);
    assert!(poll(&mut queue, &probe).is_pending());
    queue.remove(&key);
    assert!(matches!(poll(&mut queue, &probe), Poll::Ready(None)));
    queue.insert_at("b", due);
    assert!(poll(&mut queue, &probe).is_pending());
    tokio::time::advance(ms(5)).await;
    assert_eq!(next(&mut queue), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn a_reset_to_earlier_and_the_last_removal_wake_the_task() {
    let mut queue = DelayQueue::new();
    let probe = Probe::new();
    let [a, b] = [50, 60].map(|delay| queue.insert(delay, ms(delay)));
    assert!(poll(&mut queue, &probe).is_pending());
    queue.reset(&a, ms(70));
    queue.reset(&b, ms(65));
    assert_eq!(probe.wakes(), 0);
    queue.reset(&b, ms(10));
    assert_eq!(probe.wakes(), 1);
    assert!(poll(&mut queue, &probe).is_pending());
    queue.remove(&b);
    assert_eq!(probe.wakes(), 1, "one is left");
    assert!(poll(&mut queue, &probe).is_pending());
    tokio::time::advance(ms(20)).await;
    assert_eq!(probe.wakes(), 1, "a poll has seen that it was removed");
    queue.remove(&a);
    assert_eq!(probe.wakes(), 2);
    assert!(matches!(poll(&mut queue, &probe), Poll::Ready(None)));
}

#[tokio::test(start_paused = true)]
async fn clear_and_drain_wake_the_task_if_there_were_items() {
    let probe = Probe::new();
    let mut queue = DelayQueue::new();
    assert!(matches!(poll(&mut queue, &probe), Poll::Ready(None)));
    queue.clear();
    assert_eq!(queue.drain().count(), 0);
    assert_eq!(probe.wakes(), 0);
    queue.insert((), ms(1));
    assert!(poll(&mut queue, &probe).is_pending());
    queue.clear();
    assert_eq!(probe.wakes(), 2);
    queue.insert((), ms(1));
    assert!(poll(&mut queue, &probe).is_pending());
    assert_eq!(queue.drain().count(), 1);
    assert_eq!(probe.wakes(), 3);
}

#[tokio::test(start_paused = true)]
async fn only_the_waker_of_the_last_poll_is_woken() {
    let mut queue = DelayQueue::new();
    queue.insert((), ms(5));
    let probes = [Probe::new(), Probe::new()];
    assert!(poll(&mut queue, &probes[0]).is_pending());
    assert!(poll(&mut queue, &probes[1]).is_pending());
    assert_eq!(probes[0].held(), 0);
    tokio::time::advance(ms(5)).await;
    yield_now().await;
    assert_eq!(probes.map(|probe| probe.wakes()), [0, 1]);
}

// An idle paused clock jumps to the next timer. It must not jump to that of a removed item.
#[tokio::test(start_paused = true)]
async fn a_queue_that_was_emptied_leaves_no_timer_behind() {
    let start = Instant::now();
    let mut queue = DelayQueue::new();
    queue.insert((), ms(3_600_000));
    assert!(poll(&mut queue, &Probe::new()).is_pending());
    queue.clear();
    assert_eq!(next(&mut queue), None);
    assert_eq!(waterwheel::Timer::current().metrics().pending(), 0);
    tokio::time::sleep(ms(7_200_000)).await;
    assert_eq!(start.elapsed(), ms(7_200_000));
}

// Nor must it jump anywhere else while the queue waits for its handles.
#[tokio::test(start_paused = true)]
async fn a_queue_that_waits_for_its_handles_moves_no_clock() {
    let start = Instant::now();
    let mut queue = DelayQueue::new();
    let handle = queue.handle();
    let probe = Probe::new();
    let timer = waterwheel::Timer::current();
    for delay in [3_600_000, 1, 60_000] {
        let key = handle.insert((), ms(delay)).unwrap();
        assert!(poll(&mut queue, &probe).is_pending());
        handle.try_remove(&key).unwrap();
        assert!(poll(&mut queue, &probe).is_pending());
    }
    assert_eq!(timer.metrics().pending(), 0);
    tokio::time::sleep(ms(900_000_000_000)).await;
    assert_eq!(start.elapsed(), ms(900_000_000_000));
    let turns = timer.metrics().driver_turns();
    assert!(turns <= 3, "{turns} for nothing");
    // The next item is on time.
    handle.insert((), ms(5)).unwrap();
    assert!(poll(&mut queue, &probe).is_pending());
    let wakes = probe.wakes();
    tokio::time::sleep(ms(5)).await;
    assert_eq!((probe.wakes(), next(&mut queue)), (wakes + 1, Some(())));
}

#[tokio::test(start_paused = true)]
async fn a_loop_over_many_due_items_gives_way() {
    let mut queue = DelayQueue::new();
    for n in 0..1_000 {
        queue.insert(n, ms(1));
    }
    tokio::time::advance(ms(1)).await;
    let drained = std::rc::Rc::new(std::cell::Cell::new(0));
    let seen = std::rc::Rc::clone(&drained);
    let local = tokio::task::LocalSet::new();
    local.spawn_local(async move {
        while std::future::poll_fn(|cx| queue.poll_expired(cx))
            .await
            .is_some()
        {
            drained.set(drained.get() + 1);
        }
    });
    let other = local.spawn_local(async move { seen.get() });
    let seen = local.run_until(other).await.unwrap();
    assert!((1..=200).contains(&seen), "{seen} before another task ran");
}

#[tokio::test(start_paused = true)]
async fn a_poll_gives_way_while_many_items_cascade() {
    let mut queue = DelayQueue::new();
    let half = HOUR * 2 + HOUR / 2;
    for n in 0..100_000 {
        queue.insert(n, half + ms(n % 1_000));
    }
    // The hour's slot comes up, and no item is due.
    tokio::time::advance(HOUR * 2).await;
    let (probe, mut polls) = (Probe::new(), 0);
    while probe.wakes() == polls {
        assert!(poll(&mut queue, &probe).is_pending());
        polls += 1;
    }
    assert!((3..100).contains(&polls), "{polls} polls");
    tokio::time::advance(HOUR).await;
    let mut batch = Vec::new();
    while batch.len() < 100_000 {
        assert!(queue.expired_many(&mut batch, 100_000).await > 0);
    }
    assert!(
        batch
            .windows(2)
            .all(|two| two[0].deadline() <= two[1].deadline())
    );
}
