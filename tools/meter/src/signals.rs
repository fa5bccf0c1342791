//! The signals that ask the program to end. By default they end it at once, and the terminal stays as the meter left it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use tokio::runtime::Runtime;

/// Which of them has come.
#[derive(Clone)]
pub(crate) struct Signals(Arc<AtomicI32>);

impl Signals {
    /// Listens from now on.
    pub(crate) fn listen(runtime: &Runtime) -> io::Result<Signals> {
        let signals = Signals(Arc::new(AtomicI32::new(0)));
        let _inside = runtime.enter();
        signals.listen_within(runtime)?;
        Ok(signals)
    }

    /// The number of the last one.
    pub(crate) fn came(&self) -> Option<i32> {
        // Relaxed: nothing else is handed over.
        let number = self.0.load(Ordering::Relaxed);
        (number != 0).then_some(number)
    }

    #[cfg(unix)]
    fn listen_within(&self, runtime: &Runtime) -> io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};

        for kind in [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ] {
            let (mut listener, came) = (signal(kind)?, Arc::clone(&self.0));
            runtime.spawn(async move {
                while listener.recv().await.is_some() {
                    came.store(kind.as_raw_value(), Ordering::Relaxed);
                }
            });
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn listen_within(&self, runtime: &Runtime) -> io::Result<()> {
        let came = Arc::clone(&self.0);
        runtime.spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                came.store(2, Ordering::Relaxed);
            }
        });
        Ok(())
    }
}
