use std::fmt;
use std::sync::Arc;

/// Tells whether a store belongs to this process at the moment. The service checks it before each delivery.
///
/// A store that another process can take over, once this one has not been heard from for some time, has a lease that is no longer
/// held by then. Otherwise a process that was stopped for a while would deliver timers that belong to the other one by now.
#[derive(Clone, Default)]
pub struct Lease(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Lease {
    /// Returns the lease of a store that no other process can take over.
    #[must_use]
    pub fn unlimited() -> Lease {
        Lease(None)
    }

    /// Creates a lease that is held while `is_held` returns `true`. It is called for each delivery, from any thread, and must not block.
    pub fn new(is_held: impl Fn() -> bool + Send + Sync + 'static) -> Lease {
        Lease(Some(Arc::new(is_held)))
    }

    /// Returns whether no other process can have taken the store over by now.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.0.as_ref().is_none_or(|is_held| is_held())
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("is_limited", &self.0.is_some())
            .finish()
    }
}
