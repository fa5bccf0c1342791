//! How long do the commits of a store take?

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use waterwheel_durable::store::{Op, Outcome, Store, StoreError, forward};

/// The longest duration since the last `take`, and the mean of the commits.
#[derive(Debug, Default)]
pub(crate) struct Longest {
    longest: AtomicU64,
    /// The number of commits since the last [`mean`](Longest::mean), and how long they took together.
    count: AtomicU64,
    all: AtomicU64,
}

impl Longest {
    pub(crate) fn note(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.longest.fetch_max(micros, Ordering::Relaxed);
    }

    fn note_commit(&self, time: Duration) {
        self.note(time);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.all.fetch_add(micros, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the mean of the commits in milliseconds, without maintenance, and resets it.
    pub(crate) fn mean(&self) -> f64 {
        let all = self.all.swap(0, Ordering::Relaxed) as f64;
        all / self.count.swap(0, Ordering::Relaxed) as f64 / 1e3
    }

    /// Returns the maximum in milliseconds, and resets it.
    pub(crate) fn take(&self) -> f64 {
        self.longest.swap(0, Ordering::Relaxed) as f64 / 1e3
    }
}

/// A store that measures how long it is busy with a commit including the maintenance after it, or with a maintenance step without a commit:
/// no other commit begins meanwhile.
#[derive(Debug)]
pub(crate) struct Timed<S> {
    store: S,
    longest: Arc<Longest>,
    begun: Option<Instant>,
}

impl<S: Store> Timed<S> {
    pub(crate) fn new(store: S, longest: &Arc<Longest>) -> Timed<S> {
        Timed {
            store,
            longest: Arc::clone(longest),
            begun: None,
        }
    }
}

impl<S: Store> Store for Timed<S> {
    forward!(this => this.store; begin);

    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        let begun = Instant::now();
        let outcomes = self.store.commit(number, steps);
        self.begun = Some(begun);
        self.longest.note_commit(begun.elapsed());
        outcomes
    }

    fn maintain(&mut self) -> Result<(), StoreError> {
        // Without a commit before it, a maintenance step is timed by itself.
        let begun = self.begun.take().unwrap_or_else(Instant::now);
        let maintained = self.store.maintain();
        self.longest.note(begun.elapsed());
        maintained
    }

    forward!(this => this.store; reads);
}

#[cfg(test)]
mod tests {
    use waterwheel_durable::store::MemoryStore;

    use super::*;

    /// A store whose steps take a while.
    struct Slow(MemoryStore);

    impl Store for Slow {
        forward!(this => this.0; begin);

        fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
            self.0.commit(number, steps)
        }

        fn maintain(&mut self) -> Result<(), StoreError> {
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        }

        forward!(this => this.0; reads);
    }

    #[test]
    fn a_step_is_noted_with_its_commit_and_without() {
        let longest = Arc::new(Longest::default());
        let mut store = Timed::new(Slow(MemoryStore::new()), &longest);
        store.begin().unwrap();
        store.commit(1, &[]).unwrap();
        store.maintain().unwrap();
        assert!(longest.take() >= 2.0);
        store.maintain().unwrap();
        assert!(longest.take() >= 2.0);
    }
}
