//! loom's atomics, with sequentially consistent accesses that are.
//!
//! loom takes `SeqCst` for `AcqRel`, and would call the driver's target and the shards' published turns
//! a lost wake-up: two threads that each write one and read the other may then both read what was
//! before. Its fences are sequentially consistent, so each such access stands between two of them.
//! That is a little more than what C++ says of the access alone: it also orders the weaker accesses
//! around it. Accesses that ask for less are loom's own.
//!
//! loom also puts a store in no order with a read-modify-write that another thread did before, so that a thread
//! may read what the latter wrote though it has written since. (C++ has the store come later: the former read
//! what was before.) It orders two read-modify-writes, so a store of a flag or a byte is one here. Else a flag
//! that one thread finds taken, while another gives it back, stays taken for ever.

pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};

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

    pub(crate) fn swap(&self, value: u64, order: Ordering) -> u64 {
        fenced(order, || self.0.swap(value, order))
    }

    pub(crate) fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        fenced(order, || self.0.fetch_add(value, order))
    }

    pub(crate) fn fetch_min(&self, value: u64, order: Ordering) -> u64 {
        fenced(order, || self.0.fetch_min(value, order))
    }
}

#[derive(Debug, Default)]
pub(crate) struct AtomicU8(loom::sync::atomic::AtomicU8);

impl AtomicU8 {
    pub(crate) fn new(value: u8) -> AtomicU8 {
        AtomicU8(loom::sync::atomic::AtomicU8::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u8 {
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: u8, order: Ordering) {
        self.0.swap(value, order);
    }

    pub(crate) fn swap(&self, value: u8, order: Ordering) -> u8 {
        self.0.swap(value, order)
    }

    pub(crate) fn fetch_update(
        &self,
        order: Ordering,
        otherwise: Ordering,
        update: impl FnMut(u8) -> Option<u8>,
    ) -> Result<u8, u8> {
        self.0.fetch_update(order, otherwise, update)
    }

    pub(crate) fn fetch_max(&self, value: u8, order: Ordering) -> u8 {
        self.0.fetch_max(value, order)
    }

    pub(crate) fn compare_exchange(
        &self,
        from: u8,
        to: u8,
        order: Ordering,
        otherwise: Ordering,
    ) -> Result<u8, u8> {
        self.0.compare_exchange(from, to, order, otherwise)
    }
}

#[derive(Debug, Default)]
pub(crate) struct AtomicBool(loom::sync::atomic::AtomicBool);

impl AtomicBool {
    pub(crate) fn new(value: bool) -> AtomicBool {
        AtomicBool(loom::sync::atomic::AtomicBool::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> bool {
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: bool, order: Ordering) {
        self.0.swap(value, order);
    }

    pub(crate) fn swap(&self, value: bool, order: Ordering) -> bool {
        self.0.swap(value, order)
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
