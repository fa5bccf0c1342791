//! loom's atomics, with sequentially consistent accesses that are.
//!
//! loom takes `SeqCst` for `AcqRel`, and would call the driver's target and the shards' published turns
//! a lost wake-up: two threads that each write one and read the other may then both read what was
//! before. Its fences are sequentially consistent, so each such access stands between two of them.
//! That is a little more than what C++ says of the access alone: it also orders the weaker accesses
//! around it. Accesses that ask for less are loom's own.

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use loom::sync::atomic::fence;

#[derive(Debug, Default)]
pub(crate) struct AtomicU64(loom::sync::atomic::AtomicU64);

impl AtomicU64 {
    pub(crate) fn new(value: u64) -> AtomicU64 {
        AtomicU64(loom::sync::atomic::AtomicU64::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u64 {
        fenced(order, || self.0.load(order))
    }

    pub(crate) fn store(&self, value: u64, order: Ordering) {
        fenced(order, || self.0.store(value, order));
    }

    pub(crate) fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        fenced(order, || self.0.fetch_add(value, order))
    }

    pub(crate) fn fetch_min(&self, value: u64, order: Ordering) -> u64 {
        fenced(order, || self.0.fetch_min(value, order))
    }
}

fn fenced<R>(order: Ordering, access: impl FnOnce() -> R) -> R {
    if order != Ordering::SeqCst {
        return access();
    }
    fence(Ordering::SeqCst);
    let result = access();
    fence(Ordering::SeqCst);
    result
}
