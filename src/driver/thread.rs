use std::sync::atomic::{AtomicUsize, Ordering};

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
}

/// A small number of this thread's own, by which it finds its shard. Threads are numbered as they
/// first use a timer, so those of a runtime's workers tend to fall on different shards.
#[inline]
pub(super) fn number() -> usize {
    // A thread on its way out has no locals any more; any shard will do.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}
