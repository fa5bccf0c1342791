//! The log of a child: what it does, line by line.

use std::io::{Write, stdout};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use waterwheel_durable::Shift;

use crate::protocol::Line;

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// The output of the lines, and the clocks that date them.
#[derive(Debug)]
pub(super) struct Log {
    start: Instant,
    shift: Arc<Shift>,
    /// Lets one line be written at a time.
    out: Mutex<()>,
}

impl Log {
    pub(super) fn new(shift: Arc<Shift>) -> Log {
        Log {
            start: Instant::now(),
            shift,
            out: Mutex::new(()),
        }
    }

    /// The clocks that date the lines.
    pub(super) fn clocks(&self) -> Arc<Shift> {
        Arc::clone(&self.shift)
    }

    pub(super) fn say(&self, line: &Line) {
        let text = format!("{line}\n");
        let _one = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // The parent may be gone. Then this process ends too, when it is asked to stop.
        let _ = stdout().lock().write_all(text.as_bytes());
    }

    pub(super) fn wrong(&self, text: impl Into<String>) {
        self.say(&Line::Wrong { text: text.into() });
    }

    /// The number of this thread.
    pub(super) fn thread(&self) -> usize {
        THREAD.with(|number| *number)
    }

    /// The time since the child's start, in microseconds.
    pub(super) fn at(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The wall clock, in microseconds.
    pub(super) fn wall(&self) -> i64 {
        // Read the shift last: it may be moved meanwhile, after the line that reports the move.
        let machine = SystemTime::now().duration_since(UNIX_EPOCH);
        let machine = machine.map_or(0, |since| since.as_micros());
        i64::try_from(machine).unwrap_or(i64::MAX) + self.shift.wall()
    }
}
