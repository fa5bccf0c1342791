//! Counts the user's own timers that are alive, and warns once per process if there are many.

use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Netty warns at the same number.
const MOST: usize = 64;

static ALIVE: AtomicUsize = AtomicUsize::new(0);
static WARNED: Once = Once::new();

/// A timer of one's own that has a handle.
pub(super) struct Instance(());

impl Instance {
    pub(super) fn new() -> Instance {
        // Relaxed: the count alone matters.
        let alive = ALIVE.fetch_add(1, Ordering::Relaxed) + 1;
        if alive > MOST {
            WARNED.call_once(|| {
                tracing::warn!(
                    alive,
                    "many timers are alive, each with a driver and dials of its own: share one, or use `Timer::current()`"
                );
            });
        }
        Instance(())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}
