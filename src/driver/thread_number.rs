use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sync::thread_local;

static NEXT: AtomicUsize = AtomicUsize::new(1);

thread_local! {
    /// From 1 up; zero if the thread has none yet. A lazy value would check at each use whether it has been made.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// A small number of this thread's own, by which it finds its shard. Threads are numbered in the order in which they first use a
/// timer, so a runtime's workers tend to use different shards.
#[inline]
pub(super) fn number() -> usize {
    // On some systems a thread that ends has no locals any more. Any shard will do.
    match NUMBER.try_with(Cell::get) {
        Ok(0) => assign(),
        Ok(number) => number,
        Err(_) => 1,
    }
}

#[cold]
fn assign() -> usize {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    set(number);
    number
}

pub(super) fn set(number: usize) {
    NUMBER.with(|own| own.set(number));
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::number;

    #[test]
    fn each_thread_has_a_number_of_its_own_and_keeps_it() {
        let mine = number();
        let others = thread::spawn(|| (number(), number())).join().unwrap();
        assert_eq!(others.0, others.1);
        assert_ne!(others.0, mine);
        assert_eq!(number(), mine);
    }
}
