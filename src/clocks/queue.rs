//! Who waits for one clock, in order of deadline. A tree and not a wheel: the hand of a wheel cannot be set back, and these are few.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;

/// The name of a waiting sleep. No two of a queue have one, be it one after the other.
pub(super) type Key = (Duration, u64);

#[derive(Default)]
pub(super) struct Queue {
    waiting: BTreeMap<Key, Waker>,
    last: u64,
}

impl Queue {
    /// Adds a waker. Returns its key, and whether it is the first now.
    pub(super) fn insert(&mut self, deadline: Duration, waker: Waker) -> (Key, bool) {
        self.last += 1;
        let key = (deadline, self.last);
        self.waiting.insert(key, waker);
        let first = self.waiting.keys().next();
        (key, first == Some(&key))
    }

    /// Whether the waker under this key wakes the task that this one wakes. `None` if there is none any more.
    pub(super) fn will_wake(&self, key: Key, waker: &Waker) -> Option<bool> {
        let stored = self.waiting.get(&key)?;
        Some(stored.will_wake(waker))
    }

    /// Replaces the waker under this key. Returns the waker that the caller must drop without the lock: the previous one, or, as an
    /// error, the given one if nothing is left under this key.
    pub(super) fn replace(&mut self, key: Key, waker: Waker) -> Result<Waker, Waker> {
        match self.waiting.get_mut(&key) {
            Some(stored) => Ok(std::mem::replace(stored, waker)),
            None => Err(waker),
        }
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Waker> {
        self.waiting.remove(&key)
    }

    pub(super) fn first(&self) -> Option<Duration> {
        self.waiting.keys().next().map(|&(deadline, _)| deadline)
    }

    /// Takes those whose deadline is not after `now`, the earliest first, equal ones in the order in which they came.
    pub(super) fn take_due(&mut self, now: Duration) -> Vec<Waker> {
        let mut due = Vec::new();
        while let Some(entry) = self.waiting.first_entry() {
            if entry.key().0 > now {
                break;
            }
            due.push(entry.remove());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::task::{Wake, Waker};
    use std::time::Duration;

    use super::Queue;

    struct Noted(u8, Arc<Mutex<Vec<u8>>>);

    impl Wake for Noted {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn noting() -> (Arc<Mutex<Vec<u8>>>, impl Fn(u8) -> Waker) {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let for_wakers = Arc::clone(&notes);
        let waker = move |name| Waker::from(Arc::new(Noted(name, Arc::clone(&for_wakers))));
        (notes, waker)
    }

    #[test]
    fn what_is_due_comes_in_order_and_the_rest_stays() {
        let (notes, waker) = noting();
        let mut queue = Queue::default();
        for (seconds, name) in [(5, 1), (3, 2), (5, 3), (9, 4)] {
            let _ = queue.insert(at(seconds), waker(name));
        }
        assert_eq!(queue.first(), Some(at(3)));
        for due in queue.take_due(at(5)) {
            due.wake();
        }
        assert_eq!(*notes.lock().unwrap(), [2, 1, 3]);
        assert_eq!(queue.first(), Some(at(9)));
        // A clock that was set back.
        assert!(queue.take_due(at(1)).is_empty());
        assert_eq!(queue.take_due(at(9)).len(), 1);
        assert_eq!(queue.first(), None);
    }

    #[test]
    fn an_insertion_says_whether_it_is_the_first() {
        let (_, waker) = noting();
        let mut queue = Queue::default();
        let firsts = [5, 7, 5, 2].map(|seconds| queue.insert(at(seconds), waker(0)).1);
        assert_eq!(firsts, [true, false, false, true]);
    }

    #[test]
    fn a_key_names_no_other_sleep_once_its_own_is_gone() {
        let (notes, waker) = noting();
        let mut queue = Queue::default();
        let (gone, _) = queue.insert(at(5), waker(1));
        assert!(queue.remove(gone).is_some());
        let (kept, _) = queue.insert(at(5), waker(2));
        assert!(queue.remove(gone).is_none());
        assert!(queue.replace(gone, waker(3)).is_err());
        assert!(queue.replace(kept, waker(4)).is_ok());
        for due in queue.take_due(at(5)) {
            due.wake();
        }
        assert_eq!(*notes.lock().unwrap(), [4]);
    }

    #[test]
    fn a_waker_is_known_until_it_is_taken() {
        let (_, waker) = noting();
        let mut queue = Queue::default();
        let [first, other] = [1, 2].map(waker);
        let (key, _) = queue.insert(at(5), first.clone());
        assert_eq!(queue.will_wake(key, &first), Some(true));
        assert_eq!(queue.will_wake(key, &other), Some(false));
        drop(queue.take_due(at(5)));
        assert_eq!(queue.will_wake(key, &first), None);
    }
}
