//! Waiting for what is late, until it counts as lost.

use std::thread;
use std::time::Duration;

const STEP: Duration = Duration::from_millis(20);
/// Half a minute, in steps that were waited and not by the clock: a process that was stopped for a while, as a shell
/// does it or a debugger, has had no chance to be on time.
const STEPS: usize = 1500;

/// Returns as soon as it is done, or false if it never is. Waits without any timer of a runtime.
pub(crate) fn wait_for(mut done: impl FnMut() -> bool) -> bool {
    for _ in 0..STEPS {
        if done() {
            return true;
        }
        thread::sleep(STEP);
    }
    done()
}
