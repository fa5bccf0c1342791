use std::sync::{Mutex, OnceLock, PoisonError};

/// What is started at its first use, and again at the next if that has failed.
pub(super) struct Started<T> {
    value: OnceLock<T>,
    /// Held while it is started: two must not be.
    starting: Mutex<()>,
}

impl<T> Started<T> {
    pub(super) const fn new() -> Started<T> {
        Started {
            value: OnceLock::new(),
            starting: Mutex::new(()),
        }
    }

    pub(super) fn get_or_start<E>(&self, start: impl FnOnce() -> Result<T, E>) -> Option<&T> {
        if let Some(value) = self.value.get() {
            return Some(value);
        }
        let _starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been first.
        if self.value.get().is_none() {
            let value = start().ok()?;
            let _ = self.value.set(value);
        }
        self.value.get()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::Started;

    #[test]
    fn a_start_that_failed_is_tried_again_and_one_is_enough() {
        let started = Started::new();
        assert_eq!(started.get_or_start(|| Err("no descriptors")), None);
        assert_eq!(started.get_or_start(|| Err("still none")), None);
        assert_eq!(started.get_or_start(|| Ok::<_, ()>(1)), Some(&1));
        assert_eq!(started.get_or_start(|| Ok::<_, ()>(2)), Some(&1));
    }

    #[test]
    fn threads_that_ask_at_once_start_one() {
        let started = Started::new();
        let starts = AtomicUsize::new(0);
        let all = Barrier::new(4);
        let start = || {
            // Room for the others to start one as well, if they could.
            for _ in 0..1_000 {
                thread::yield_now();
            }
            Ok::<_, ()>(starts.fetch_add(1, Ordering::SeqCst))
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    all.wait();
                    assert_eq!(started.get_or_start(start), Some(&0));
                });
            }
        });
        assert_eq!(starts.load(Ordering::SeqCst), 1);
    }
}
