//! CPU time by the names of threads. The threads of each clock's runtime have the clock's name, and the name of waterwheel's
//! wake-up thread begins with it.

use std::path::PathBuf;
use std::time::Duration;

use waterwheel_bench_kit::threads;

/// The CPU time of all threads of this process whose names begin like this, since they started. `None` if the system does not
/// report it.
pub(crate) fn of_threads(beginning: &str) -> Option<Duration> {
    let is_of =
        |thread: &PathBuf| threads::name(thread).is_some_and(|it| it.starts_with(beginning));
    // A thread that ends meanwhile belongs to no clock.
    let nanoseconds: u64 = threads::all()
        .filter(is_of)
        .filter_map(|thread| threads::nanos(&thread))
        .sum();
    (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use std::hint;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;

    use super::*;

    #[test]
    fn a_busy_thread_counts_for_its_name_and_no_other() {
        if of_threads("").is_none() {
            return; // This kernel does not report CPU times.
        }
        let over = AtomicBool::new(false);
        let of_another_name = thread::scope(|scope| {
            let busy = thread::Builder::new().name("spin-fast".into());
            let started = busy.spawn_scoped(scope, || {
                while !over.load(Relaxed) {
                    hint::spin_loop();
                }
            });
            started.expect("a thread");
            let wanted = Duration::from_millis(20);
            while of_threads("spin").is_none_or(|time| time < wanted) {
                thread::yield_now();
            }
            let of_another_name = of_threads("spinning");
            over.store(true, Relaxed);
            of_another_name
        });
        assert_eq!(of_another_name, None);
    }
}
