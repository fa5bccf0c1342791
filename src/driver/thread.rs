use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

static NEXT: AtomicUsize = AtomicUsize::new(1);

thread_local! {
    /// From 1 up; zero is none yet. Not a lazy value, which would be asked at each use whether it
    /// has been made.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// A small number of this thread's own, by which it finds its shard. Threads are numbered as they
/// first use a timer, so those of a runtime's workers tend to fall on different shards.
#[inline]
pub(super) fn number() -> usize {
    match NUMBER.get() {
        0 => assign(),
        number => number,
    }
}

#[cold]
fn assign() -> usize {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    NUMBER.set(number);
    number
}
