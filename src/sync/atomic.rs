//! loom's atomics, with accesses that are truly sequentially consistent.
//!
//! loom treats `SeqCst` as `AcqRel`. It would then report a lost wake-up where there is none: of two threads that each write one
//! of `next` and the target and read the other, both could read the old value. loom's fences are sequentially consistent, so
//! each `SeqCst` access stands between two of them here. That is a little stronger than C++ requires, since it also orders the
//! weaker accesses around it. Accesses with a weaker ordering are loom's own.
//!
//! loom also does not order a plain store after a read-modify-write that another thread has done before on the same atomic, as
//! C++ does: a thread could read the older value after it has stored a newer one. loom does order two read-modify-writes, so a
//! store of a flag or a byte is a swap here. Otherwise a flag that one thread finds taken, while another gives it back, could
//! stay taken forever.

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

    pub(crate) fn fetch_max(&self, value: u64, order: Ordering) -> u64 {
        fenced(order, || self.0.fetch_max(value, order))
    }
}

#[derive(Debug, Default)]
pub(crate) struct AtomicU8(loom::sync::atomic::AtomicU8);

impl AtomicU8 {
    pub(crate) fn new(value: u8) -> AtomicU8 {
        AtomicU8(loom::sync::atomic::AtomicU8::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u8 {
        fenced(order, || self.0.load(order))
    }

    pub(crate) fn store(&self, value: u8, order: Ordering) {
        self.0.swap(value, order);
    }

    pub(crate) fn fetch_update(
        &self,
        order: Ordering,
        otherwise: Ordering,
        update: impl FnMut(u8) -> Option<u8>,
    ) -> Result<u8, u8> {
        self.0.fetch_update(order, otherwise, update)
    }

    pub(crate) fn fetch_or(&self, bits: u8, order: Ordering) -> u8 {
        fenced(order, || self.0.fetch_or(bits, order))
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
