//! Random steps on a queue and a naive list, in virtual time.

use std::task::Poll;

use proptest::collection::vec;
use proptest::prelude::*;

use waterwheel::delay_queue::{Expired, Handle, Key};
use waterwheel::{DelayQueue, Duration, Instant};

use crate::poll;
use crate::support::{Probe, paused, us};

/// `which` picks an item: every fourth number picks one that is gone, the others an existing one. Times are in µs; those of
/// deadlines count from now, and may lie in the past.
#[derive(Debug, Clone)]
enum Op {
    Insert {
        delay: i64,
        by_handle: bool,
    },
    InsertAfter {
        timeout: u64,
        by_handle: bool,
    },
    Remove {
        which: usize,
        by_handle: bool,
    },
    Reset {
        which: usize,
        delay: i64,
        by_handle: bool,
    },
    Advance {
        by: u64,
    },
    Poll {
        times: usize,
    },
    PollMany {
        most: usize,
    },
    Handle,
    DropHandle,
    Clear,
    Drain,
    Compact,
    Reserve {
        additional: usize,
    },
}

struct Item {
    id: u64,
    key: Key,
    deadline: Instant,
    /// The tick at which it comes out, and its position within the tick.
    place: (u64, u64),
}

/// A queue and a list.
struct Pair {
    queue: DelayQueue<u64>,
    handle: Option<Handle<u64>>,
    probe: Probe,
    start: Instant,
    items: Vec<Item>,
    gone: Vec<Key>,
    filed: u64,
    /// The time that a poll has read, and the time that the queue has reached.
    read: u64,
    hand: u64,
    /// The number of wakes before the last poll, if that found nothing.
    waits: Option<usize>,
    /// Whether the last poll found the queue empty, and nothing was inserted since.
    was_empty: bool,
}

const MILLISECOND: u64 = 1_000;

impl Pair {
    fn new() -> Pair {
        Pair {
            queue: DelayQueue::new(),
            handle: None,
            probe: Probe::new(),
            start: Instant::now(),
            items: Vec::new(),
            gone: Vec::new(),
            filed: 0,
            read: 0,
            hand: 0,
            waits: None,
            was_empty: false,
        }
    }

    async fn apply(&mut self, op: Op) {
        match op {
            Op::Insert { delay, by_handle } => {
                let id = self.filed;
                let deadline = self.deadline(delay);
                let key = match &self.handle {
                    Some(handle) if by_handle => handle.insert_at(id, deadline).unwrap(),
                    _ => self.queue.insert_at(id, deadline),
                };
                self.file(id, key, deadline);
            }
            Op::InsertAfter { timeout, by_handle } => {
                let id = self.filed;
                let deadline = Instant::now() + us(timeout);
                let key = match &self.handle {
                    Some(handle) if by_handle => handle.insert(id, us(timeout)).unwrap(),
                    _ => self.queue.insert(id, us(timeout)),
                };
                self.file(id, key, deadline);
            }
            Op::Remove { which, by_handle } => {
                let Some((key, at)) = self.pick(which) else {
                    return;
                };
                let removed = match &self.handle {
                    Some(handle) if by_handle => handle.try_remove(&key),
                    _ => self.queue.try_remove(&key),
                };
                assert_eq!(removed.is_some(), at.is_some(), "{key:?}");
                if let Some(at) = at {
                    let expired = removed.unwrap();
                    assert_eq!(expired.deadline(), self.rounded(self.items[at].deadline));
                    assert_eq!(
                        (expired.key(), expired.into_inner()),
                        (key, self.items[at].id)
                    );
                    self.gone(at);
                }
            }
            Op::Reset {
                which,
                delay,
                by_handle,
            } => {
                let Some((key, at)) = self.pick(which) else {
                    return;
                };
                let deadline = self.deadline(delay);
                let moved = match &self.handle {
                    Some(handle) if by_handle => handle.try_reset_at(&key, deadline),
                    _ => self.queue.try_reset_at(&key, deadline),
                };
                assert_eq!(moved, at.is_some(), "{key:?}");
                if let Some(at) = at {
                    let id = self.items.remove(at).id;
                    self.file(id, key, deadline);
                }
            }
            Op::Advance { by } => tokio::time::advance(us(by)).await,
            Op::Poll { times } => {
                for _ in 0..times {
                    self.poll();
                    self.check();
                }
            }
            Op::PollMany { most } => self.poll_many(most),
            Op::Handle => self.handle = Some(self.queue.handle()),
            Op::DropHandle => self.handle = None,
            Op::Clear => {
                self.queue.clear();
                self.all_gone();
            }
            Op::Drain => {
                let mut values = Vec::from_iter(self.queue.drain());
                values.sort_unstable();
                let mut ids = Vec::from_iter(self.items.iter().map(|item| item.id));
                ids.sort_unstable();
                assert_eq!(values, ids);
                self.all_gone();
            }
            Op::Compact => self.queue.compact(),
            Op::Reserve { additional } => {
                self.queue.reserve(additional);
                assert!(self.queue.capacity() >= self.items.len() + additional);
            }
        }
    }

    fn deadline(&self, delay: i64) -> Instant {
        let now = Instant::now();
        let moved = us(delay.unsigned_abs());
        match delay < 0 {
            true => now.checked_sub(moved).unwrap_or(self.start),
            false => now + moved,
        }
    }

    /// The tick of a deadline.
    fn tick(&self, deadline: Instant) -> u64 {
        let since = deadline.saturating_duration_since(self.start);
        (since.as_micros() as u64).div_ceil(MILLISECOND)
    }

    fn rounded(&self, deadline: Instant) -> Instant {
        self.start + Duration::from_millis(self.tick(deadline))
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_micros() as u64 / MILLISECOND
    }

    fn file(&mut self, id: u64, key: Key, deadline: Instant) {
        let place = (self.tick(deadline).max(self.hand), self.filed);
        self.filed += 1;
        let waits = self.waits.filter(|_| std::mem::take(&mut self.was_empty));
        if let Some(before) = waits {
            assert!(self.probe.wakes() > before, "the first wakes no task");
        }
        self.items.push(Item {
            id,
            key,
            deadline,
            place,
        });
    }

    fn next(&self) -> Option<&Item> {
        self.items.iter().min_by_key(|item| item.place)
    }

    fn pick(&self, which: usize) -> Option<(Key, Option<usize>)> {
        let (kind, which) = (which % 4, which / 4);
        if kind == 0 && !self.gone.is_empty() {
            return Some((self.gone[which % self.gone.len()], None));
        }
        let at = which.checked_rem(self.items.len())?;
        Some((self.items[at].key, Some(at)))
    }

    fn gone(&mut self, at: usize) {
        self.gone.push(self.items.remove(at).key);
        self.woken_at_the_end();
    }

    fn all_gone(&mut self) {
        if !self.items.is_empty() {
            self.gone.extend(self.items.drain(..).map(|item| item.key));
            self.woken_at_the_end();
        }
    }

    /// Checks that a waiting task is notified when there is nothing left to wait for.
    fn woken_at_the_end(&mut self) {
        if self.items.is_empty() && self.handle.is_none() {
            if let Some(before) = self.waits.take() {
                assert!(self.probe.wakes() > before, "the end wakes no task");
            }
        }
    }

    /// The items that the next poll returns, at most `most`. A poll for one reads the clock only if nothing is due by its last reading.
    fn due(&mut self, most: usize, reads: bool) -> Vec<u64> {
        if reads || self.next().is_none_or(|next| next.place.0 > self.read) {
            self.read = self.now();
        }
        let mut due = Vec::new();
        while due.len() < most {
            let next = self
                .items
                .iter()
                .enumerate()
                .min_by_key(|(_, item)| item.place);
            let Some((at, item)) = next.filter(|(_, item)| item.place.0 <= self.read) else {
                self.hand = self.read;
                break;
            };
            self.hand = item.place.0;
            due.push(item.id);
            let item = self.items.remove(at);
            self.gone.push(item.key);
        }
        due
    }

    fn poll(&mut self) {
        let found = self.due(1, false);
        let before = self.probe.wakes();
        self.waits = None;
        self.was_empty = self.items.is_empty();
        match poll(&mut self.queue, &self.probe) {
            Poll::Ready(Some(expired)) => assert_eq!([expired.into_inner()], found[..]),
            Poll::Ready(None) => {
                assert!(found.is_empty() && self.items.is_empty() && self.handle.is_none());
                self.waits = Some(before);
            }
            Poll::Pending => {
                assert!(found.is_empty(), "{found:?} is due");
                assert!(
                    !self.items.is_empty() || self.handle.is_some(),
                    "a wait for nothing"
                );
                self.waits = Some(before);
            }
        }
    }

    fn poll_many(&mut self, most: usize) {
        let found = match most {
            0 => Vec::new(),
            _ => self.due(most, true),
        };
        let mut batch: Vec<Expired<u64>> = Vec::new();
        let waker = self.probe.waker();
        let mut context = std::task::Context::from_waker(&waker);
        let polled = self.queue.poll_expired_many(&mut context, &mut batch, most);
        let values = Vec::from_iter(batch.into_iter().map(Expired::into_inner));
        assert_eq!(values, found);
        match polled {
            Poll::Ready(0) => assert!(most == 0 || self.items.is_empty() && self.handle.is_none()),
            Poll::Ready(count) => assert_eq!(count, values.len()),
            Poll::Pending => assert!(!self.items.is_empty() || self.handle.is_some()),
        }
        if most > 0 {
            self.waits = None;
        }
    }

    fn check(&mut self) {
        assert_eq!(self.queue.len(), self.items.len());
        assert_eq!(self.queue.is_empty(), self.items.is_empty());
        assert_eq!(
            self.queue.peek(),
            self.next().map(|item| item.key),
            "the next"
        );
        for item in &self.items {
            assert_eq!(self.queue.deadline(&item.key), self.rounded(item.deadline));
        }
        for key in &self.gone {
            assert_eq!(self.queue.try_deadline(key), None, "{key:?} is gone");
        }
        let is_due = self.next().is_some_and(|next| next.place.0 <= self.now());
        if let Some(before) = self.waits.filter(|_| is_due) {
            assert!(
                self.probe.wakes() > before,
                "an item is due, and the task sleeps"
            );
        }
    }
}

fn run(ops: Vec<Op>) {
    paused().block_on(tokio::task::unconstrained(async {
        let mut pair = Pair::new();
        // Binds the queue to its timer, whose ticks begin now.
        pair.poll();
        for op in ops {
            pair.apply(op).await;
            pair.check();
        }
        // Nothing is lost.
        tokio::time::advance(Duration::from_secs(3_000 * 86_400)).await;
        while !pair.items.is_empty() {
            pair.poll();
            pair.check();
        }
        pair.handle = None;
        pair.poll();
    }));
}

fn delays() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => -3_000..=3_000_i64,
        3 => 0..=2_000_000_i64,
        2 => 0..=200_000_000_i64,
        1 => (0..=2_000_i64).prop_map(|days| days * 86_400_000_000),
        1 => (1..=5_i64, -2..=2_i64).prop_map(|(seconds, jitter)| seconds * 1_000_000 + jitter),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let which = 0..1_000_usize;
    let by_handle = prop::bool::ANY;
    let op = prop_oneof![
        8 => (delays(), by_handle).prop_map(|(delay, by_handle)| Op::Insert { delay, by_handle }),
        4 => (delays(), by_handle).prop_map(|(delay, by_handle)| Op::InsertAfter {
            timeout: delay.unsigned_abs(),
            by_handle
        }),
        3 => (which.clone(), by_handle).prop_map(|(which, by_handle)| Op::Remove { which, by_handle }),
        3 => (which, delays(), by_handle)
            .prop_map(|(which, delay, by_handle)| Op::Reset { which, delay, by_handle }),
        6 => delays().prop_map(|by| Op::Advance { by: by.unsigned_abs() }),
        6 => (1..4_usize).prop_map(|times| Op::Poll { times }),
        3 => prop_oneof![0..5_usize, Just(usize::MAX)].prop_map(|most| Op::PollMany { most }),
        1 => Just(Op::Handle),
        1 => Just(Op::DropHandle),
        1 => prop_oneof![Just(Op::Clear), Just(Op::Drain)],
        1 => Just(Op::Compact),
        1 => (0..300_usize).prop_map(|additional| Op::Reserve { additional }),
    ];
    vec(op, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]
    #[test]
    fn a_queue_does_what_a_list_does(ops in ops()) {
        run(ops);
    }
}
