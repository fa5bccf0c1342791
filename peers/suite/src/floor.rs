//! The floor of `cancel`: the steps that no timer of this kind can do without, together and not one by one.
//!
//! One clock read, two lock pairs of an uncontended std mutex (to register and to cancel), one clone and drop of the
//! task's real waker, one slab insert and remove. No wheel, no driver, nothing shared between tasks. The
//! ambient floor has one `Handle::current()` more, dropped at once.

use std::hint::black_box;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Waker};
use std::time::Instant;

use slab::Slab;
use tokio::runtime::Handle;

use crate::workloads::cancel::Operation;

/// One task's own slab of wakers.
#[derive(Default)]
pub(crate) struct Floor<const AMBIENT: bool> {
    pending: Mutex<Slab<Waker>>,
}

impl<const AMBIENT: bool> Floor<AMBIENT> {
    /// Name of this floor among the contestants.
    pub(crate) const NAME: &'static str = if AMBIENT { "floor, ambient" } else { "floor" };

    fn lock(&self) -> MutexGuard<'_, Slab<Waker>> {
        self.pending.lock().expect("nothing panics under this lock")
    }
}

impl<const AMBIENT: bool> Operation for Floor<AMBIENT> {
    fn once(&mut self, context: &mut Context<'_>) {
        // As a reference that the compiler cannot see through, so that the lock stays a lock.
        let floor = black_box(&*self);
        if AMBIENT {
            black_box(Handle::current());
        }
        black_box(Instant::now());
        let waker = context.waker().clone();
        let key = black_box(floor.lock().insert(waker));
        let waker = floor.lock().remove(key);
        drop(waker);
    }

    fn hold_another(&mut self, context: &mut Context<'_>) {
        self.lock().insert(context.waker().clone());
    }
}
