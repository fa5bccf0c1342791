use crate::error::Error;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// The permits of a `Timer` with a `max_pending`. A future holds one from when it is made until it completes or is dropped
/// (`time::Phase::holds_permit`).
///
/// Relaxed throughout: the count alone matters, and it orders no other data.
#[derive(Debug)]
pub(crate) struct Permits {
    most: usize,
    taken: AtomicUsize,
}

impl Permits {
    pub(super) fn new(most: usize) -> Permits {
        Permits {
            most,
            taken: AtomicUsize::new(0),
        }
    }

    /// Takes a permit if one is left.
    pub(crate) fn try_take(&self) -> Result<(), Error> {
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                (taken < self.most).then_some(taken + 1)
            })
            .map_err(|_| Error::at_capacity())?;
        Ok(())
    }

    /// Takes a permit even if none is left: for a future that was done and is reset.
    pub(crate) fn take(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }
}
