//! std's or loom's synchronization primitives, and calls of foreign code such as wakers with panics contained.
//!
//! All state that the driver's threads share is made of these types: std's, or loom's under `--cfg waterwheel_loom`, so that the
//! models in `driver/models` run the real code. Three things are std's in either case: write-once values (`OnceLock`), reference
//! counts, and the registry of the runtimes' timers. (loom's own `--cfg loom` would rebuild tokio as well, which breaks it.)
//!
//! Foreign code is called by [`wake_all`] and [`isolate`], with no lock held. A panic in it ends there.

#[cfg(waterwheel_loom)]
pub(crate) mod atomic;
#[cfg(not(waterwheel_loom))]
pub(crate) use std::sync::atomic;

#[cfg(waterwheel_loom)]
use loom::sync as imp;
#[cfg(not(waterwheel_loom))]
use std::sync as imp;

#[cfg(waterwheel_loom)]
pub(crate) use model_local as thread_local;
#[cfg(not(waterwheel_loom))]
pub(crate) use std::thread_local;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::task::Waker;
use std::time::Duration;

/// A mutex without poison.
///
/// Our code does not panic with a lock held. If a thread panics nevertheless, a `Sleep` that is dropped while it unwinds must
/// not panic a second time, since that aborts the process.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(imp::Mutex<T>);

pub(crate) type MutexGuard<'a, T> = imp::MutexGuard<'a, T>;

impl<T> Mutex<T> {
    #[cfg(not(waterwheel_loom))]
    pub(crate) const fn new(value: T) -> Mutex<T> {
        Mutex(imp::Mutex::new(value))
    }

    #[cfg(waterwheel_loom)]
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(imp::Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value without locking: no other thread can hold the lock.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub(crate) struct Condvar(imp::Condvar);

impl Condvar {
    #[cfg(not(waterwheel_loom))]
    pub(crate) const fn new() -> Condvar {
        Condvar(imp::Condvar::new())
    }

    #[cfg(waterwheel_loom)]
    pub(crate) fn new() -> Condvar {
        Condvar(imp::Condvar::new())
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Waits to be notified, at most for `most` if that is given. In a model no time passes during the wait: the model moves
    /// the clock and notifies.
    pub(crate) fn wait<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        most: Option<Duration>,
    ) -> MutexGuard<'a, T> {
        match most {
            Some(most) => {
                let waited = self.0.wait_timeout(guard, most);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.0.wait(guard).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// A static of these types. In a model each execution has its own, made when first used.
macro_rules! global {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;) => {
        #[cfg(not(waterwheel_loom))]
        $(#[$attribute])*
        static $name: $type = $value;
        #[cfg(waterwheel_loom)]
        loom::lazy_static! {
            $(#[$attribute])*
            static ref $name: $type = $value;
        }
    };
}
pub(crate) use global;

/// loom's `thread_local!` does not accept `const` blocks.
#[cfg(waterwheel_loom)]
macro_rules! model_local {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = const { $value:expr };) => {
        loom::thread_local! {
            $(#[$attribute])*
            static $name: $type = $value;
        }
    };
}
#[cfg(waterwheel_loom)]
pub(crate) use model_local;

/// A value on cache lines of its own: 128 bytes, since processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct OwnLine<T>(pub(crate) T);

impl<T> std::ops::Deref for OwnLine<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Wakes each waker. Call it with no lock held: wakers are foreign code.
///
/// A waker that panics neither strands the others nor ends the driver. The panic hook has reported the panic.
pub(crate) fn wake_all(wakers: impl Iterator<Item = Waker>) {
    for waker in wakers {
        isolate(|| waker.wake(), |_| ());
    }
}

/// Runs foreign code, and contains its panic. `report` gets the payload; the panic hook has already reported the panic.
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
