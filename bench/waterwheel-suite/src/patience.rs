//! Waits for late timers, until they count as lost.

use std::thread;
use std::time::Duration;

const STEP: Duration = Duration::from_millis(20);
/// Half a minute, counted in steps and not by the clock: while a shell or a debugger stops the process, no timer can be
/// on time.
const STEPS: usize = 1500;

/// Waits until `done` returns true, or for half a minute; returns what `done` returned last. Uses no timer of a runtime.
pub(crate) fn wait_for(mut done: impl FnMut() -> bool) -> bool {
    for _ in 0..STEPS {
        if done() {
            return true;
        }
        thread::sleep(STEP);
    }
    done()
}
