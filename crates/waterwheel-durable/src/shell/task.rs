//! Helpers for the tasks and threads of the shell: catching panics of user code, and yielding to other tasks.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use waterwheel_durable_core::store::StoreError;

/// The message of a panic.
pub(super) fn message_of(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text
        .unwrap_or("the panic payload is not a string")
        .to_owned();
    unwound(|| drop(panic));
    text
}

/// Calls code that may panic, and continues. The panic's payload may itself panic when dropped, so it is leaked.
pub(crate) fn unwound(call: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
        std::mem::forget(panic);
    }
}

/// Treats a panic of the store as a failure, since what it has written is unknown.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let message = message_of(panic);
        Err(StoreError::indeterminate(format!(
            "the store panicked: {message}"
        )))
    })
}

/// Yields to the back of the worker's queue, from which another worker takes the task if what runs first blocks this one. `tokio::task::yield_now` would put it where
/// only this worker finds it.
pub(super) async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
