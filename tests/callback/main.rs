//! Callbacks: when they run and in which order, cancels, the bound, the end of a timer, and code that is not ours.

#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "tracing")]
#[path = "../support/report.rs"]
mod report;

mod bounded;
mod cancelling;
mod foreign;
#[cfg(feature = "tracing")]
mod reports;
mod running;
mod stopping;
mod stress;
mod types;

use std::sync::{Arc, Mutex, mpsc};

use waterwheel::callback::TimeoutHandle;
use waterwheel::{Duration, Timer, sleep};

use support::{LIMIT, ms};

/// The values that callbacks have noted, in order.
struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T: Send + 'static> Log<T> {
    fn new() -> Log<T> {
        Log(Arc::default())
    }

    /// A callback that notes this value.
    fn note(&self, what: T) -> impl FnOnce() + Send + use<T> {
        let log = self.clone();
        move || log.push(what)
    }

    fn push(&self, what: T) {
        self.0.lock().unwrap().push(what);
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl<T> Clone for Log<T> {
    fn clone(&self) -> Log<T> {
        Log(Arc::clone(&self.0))
    }
}

/// On a paused clock, returns after everything that was due has run: the clock does not jump while there is work.
async fn settle() {
    sleep(ms(1)).await;
}

/// A callback that blocks until it is released, so that later ones are due but do not begin.
struct Blocker {
    handle: TimeoutHandle,
    _release: mpsc::Sender<()>,
}

impl Blocker {
    /// Blocks one worker of the timer's runtime, which must have another.
    fn start(timer: &Timer) -> Blocker {
        let (release, released) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let handle = timer.call_after(Duration::ZERO, move || {
            let _ = begin.send(());
            let _ = released.recv_timeout(LIMIT);
        });
        begun.recv_timeout(LIMIT).expect("it begins");
        Blocker {
            handle,
            _release: release,
        }
    }
}
