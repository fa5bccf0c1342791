//! CPU time by the names of threads. The threads of each clock's runtime have the clock's name, and the name of waterwheel's
//! wake-up thread begins with it.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// The CPU time of all threads of this process whose names begin like this, since they started. `None` if the system does not
/// report it.
pub(crate) fn of_threads(beginning: &str) -> Option<Duration> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        // A thread that ends meanwhile belongs to no clock.
        nanoseconds += of_thread(&thread.ok()?.path(), beginning).unwrap_or(0);
    }
    (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
}

fn of_thread(thread: &Path, beginning: &str) -> Option<u64> {
    let name = fs::read_to_string(thread.join("comm")).ok()?;
    if !name.starts_with(beginning) {
        return None;
    }
    let times = fs::read_to_string(thread.join("schedstat")).ok()?;
    times.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
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
