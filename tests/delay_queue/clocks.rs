//! Clocks that stand still until they are moved: they stop where an item is due, but not on the way.

use waterwheel::{DelayQueue, Duration, Instant, ManualClock, Timer};

use crate::support::{HOUR, Probe, us};
use crate::{all_due, next, poll};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

/// A queue of items with these timeouts, on a manual clock.
fn by_hand(timeouts: &[Duration]) -> (ManualClock, DelayQueue<Duration>) {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).start().unwrap();
    let mut queue = DelayQueue::on(&timer);
    for &timeout in timeouts {
        queue.insert(timeout, timeout);
    }
    (clock, queue)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_next_advance_goes_to_an_items_deadline() {
    let timeouts = [
        us(1_000),
        HOUR + us(7_000),
        HOUR * 5,
        DAY * 400,
        DAY * 4_000,
    ];
    let (clock, mut queue) = by_hand(&timeouts);
    let start = clock.now();
    let probe = Probe::new();
    for (at, timeout) in timeouts.into_iter().enumerate() {
        assert!(poll(&mut queue, &probe).is_pending());
        assert_eq!(clock.advance_to_next(), Some(start + timeout));
        assert_eq!(probe.wakes(), at + 1);
        assert_eq!(all_due(&mut queue), [timeout]);
    }
    assert_eq!(next(&mut queue), None);
    assert_eq!(clock.advance_to_next(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_earlier_item_moves_the_next_advance() {
    let (clock, mut queue) = by_hand(&[HOUR * 9]);
    let start = clock.now();
    let probe = Probe::new();
    assert!(poll(&mut queue, &probe).is_pending());
    let by_handle = queue.handle();
    // Without a poll in between, and with the later one last.
    by_handle.insert(HOUR * 3, HOUR * 3).unwrap();
    let last = queue.insert(HOUR * 4, HOUR * 4);
    assert!(poll(&mut queue, &probe).is_pending());
    assert_eq!(clock.advance_to_next(), Some(start + HOUR * 3));
    queue.reset_at(&last, start + HOUR * 5);
    assert_eq!(all_due(&mut queue), [HOUR * 3]);
    assert_eq!(clock.advance_to_next(), Some(start + HOUR * 5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_clock_stops_at_a_deadline_that_is_gone_once_at_most() {
    // Until then all are in one slot of a dial, so that the queue would have to look at each.
    let at = HOUR * 5;
    let later = at + HOUR / 2;
    let (clock, mut queue) = by_hand(&[later, HOUR * 9]);
    let start = clock.now();
    let probe = Probe::new();
    let gone: Vec<_> = (1..=7).map(|n| queue.insert(at, at + SECOND * n)).collect();
    assert!(poll(&mut queue, &probe).is_pending());
    for key in &gone {
        queue.remove(key);
        assert!(poll(&mut queue, &probe).is_pending());
    }
    assert_eq!(clock.advance_to_next(), Some(start + at + SECOND));
    assert!(poll(&mut queue, &probe).is_pending());
    assert_eq!(clock.advance_to_next(), Some(start + later));
    assert_eq!(next(&mut queue), Some(later));
    assert!(poll(&mut queue, &probe).is_pending());
    queue.clear();
    assert_eq!(next(&mut queue), None);
    assert_eq!(clock.advance_to_next(), None);
    // A deadline from before the queue was empty belongs to none of its items.
    let gone = queue.insert(HOUR, HOUR * 10);
    queue.remove(&gone);
    queue.insert(HOUR, HOUR * 20);
    assert!(poll(&mut queue, &probe).is_pending());
    assert_eq!(clock.advance_to_next(), Some(start + later + HOUR * 20));
}

#[tokio::test(start_paused = true)]
async fn a_paused_clock_does_not_stop_on_the_way_either() {
    let start = Instant::now();
    let mut queue = DelayQueue::new();
    let timeout = DAY * 40 + us(1_003_000);
    queue.insert((), timeout);
    let probe = Probe::new();
    assert!(poll(&mut queue, &probe).is_pending());
    tokio::time::sleep(timeout).await;
    assert_eq!(start.elapsed(), timeout);
    assert_eq!((probe.wakes(), next(&mut queue)), (1, Some(())));
}
