//! The signals that ask the program to end. By default they end it at once, and leave the terminal as the meter has set it.
//!
//! The first one ends it in order. A terminal that accepts no output delays that, so the second one ends the process.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use ratatui::crossterm::terminal::disable_raw_mode;
use tokio::runtime::Runtime;

/// The number of the signal that has come.
#[derive(Clone)]
pub(crate) struct Signals(Arc<AtomicI32>);

/// The exit code that a shell reports for a program that this signal has ended.
pub(crate) fn code(number: i32) -> i32 {
    128 + number
}

impl Signals {
    /// Starts to listen.
    pub(crate) fn listen(runtime: &Runtime) -> io::Result<Signals> {
        let signals = Signals(Arc::new(AtomicI32::new(0)));
        let _inside = runtime.enter();
        signals.listen_within(runtime)?;
        Ok(signals)
    }

    /// The number of the signal that came.
    pub(crate) fn came(&self) -> Option<i32> {
        // Relaxed: no other data depends on it.
        let number = self.0.load(Ordering::Relaxed);
        (number != 0).then_some(number)
    }

    fn come(&self, number: i32) {
        // Relaxed: no other data depends on it.
        if self.0.swap(number, Ordering::Relaxed) != 0 {
            // This writes nothing, so it cannot be held up.
            let _ = disable_raw_mode();
            process::exit(code(number));
        }
    }

    #[cfg(unix)]
    fn listen_within(&self, runtime: &Runtime) -> io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};

        for kind in [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ] {
            let (mut listener, came) = (signal(kind)?, self.clone());
            runtime.spawn(async move {
                while listener.recv().await.is_some() {
                    came.come(kind.as_raw_value());
                }
            });
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn listen_within(&self, runtime: &Runtime) -> io::Result<()> {
        let came = self.clone();
        runtime.spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                came.come(2);
            }
        });
        Ok(())
    }
}
