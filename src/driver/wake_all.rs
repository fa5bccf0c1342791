use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakes each. Call it with no lock held: a waker's code is not ours.
///
/// A waker that panics neither strands the others nor ends the driver. The panic hook has reported the panic.
pub(crate) fn wake_all(wakers: impl Iterator<Item = Waker>) {
    for waker in wakers {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            // A payload whose destructor panics as well is leaked.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(payload))).map_err(std::mem::forget);
        }
    }
}
