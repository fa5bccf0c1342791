use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakes each. Call it with no lock held: a waker's code is not ours.
///
/// A waker that panics neither strands the others nor ends the driver. The panic hook has reported the panic.
pub(crate) fn wake_all(wakers: impl Iterator<Item = Waker>) {
    for waker in wakers {
        isolate(|| waker.wake(), |_| ());
    }
}

/// Runs code that is not ours, and ends a panic of it here. `report` gets its payload; the panic hook has reported it before.
#[inline]
pub(crate) fn isolate(run: impl FnOnce(), report: impl FnOnce(&(dyn Any + Send))) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
        let end = move || {
            report(&*payload);
            drop(payload);
        };
        // A payload whose destructor panics as well is leaked.
        let _ = catch_unwind(AssertUnwindSafe(end)).map_err(std::mem::forget);
    }
}
