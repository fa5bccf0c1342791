//! The one door to threads' shared memory: std's types, or loom's under `--cfg waterwheel_loom`.
//!
//! The target, the shards' locks and published turns, the cells and the stage are made of these, so
//! that a model checker can run the real code. What is written once (`OnceLock`), the bell's
//! condition variable and the registry of ambient timers are std's in either case. (loom's own
//! `--cfg loom` would rebuild tokio as well, which breaks it.)

#[cfg(waterwheel_loom)]
pub(crate) use loom::sync::atomic;
#[cfg(not(waterwheel_loom))]
pub(crate) use std::sync::atomic;

#[cfg(waterwheel_loom)]
use loom::sync as imp;
#[cfg(not(waterwheel_loom))]
use std::sync as imp;

use std::sync::PoisonError;

/// A mutex that knows no poison.
///
/// Nothing of ours panics with a lock held; and where a caller's thread dies all the same, a
/// `Sleep` that is dropped while it unwinds must not panic again, for that aborts the process.
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
}

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
