//! A runtime that another thread ends.

use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

pub(crate) struct Home {
    pub(crate) handle: Handle,
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Home {
    pub(crate) fn new(threads: usize) -> Home {
        let mut builder = match threads {
            0 => Builder::new_current_thread(),
            _ => Builder::new_multi_thread(),
        };
        if threads > 0 {
            builder.worker_threads(threads);
        }
        let runtime = builder.enable_all().build().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        Home {
            handle: runtime.handle().clone(),
            stop,
            thread: thread::spawn(move || {
                let _ = runtime.block_on(stopped);
                drop(runtime);
            }),
        }
    }

    /// Ends the runtime. Returns when it is gone, with all its tasks and threads.
    pub(crate) fn end(self) {
        let _ = self.stop.send(());
        self.thread.join().unwrap();
    }
}
