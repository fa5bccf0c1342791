use std::fmt;
use std::io;
use std::sync::mpsc;
use std::thread;

use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::protocol::{Event, Lease, Opening, Ownership};
use crate::server::Server;

/// The thread that sends the heartbeats of a node. It does nothing else, so that a busy service does not lose its lease.
pub(crate) struct Owner {
    events: mpsc::Receiver<Event>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Owner {
    pub(crate) fn start(server: Server, partition: u8) -> io::Result<Owner> {
        let (sender, events) = mpsc::channel();
        let (stop, mut stopped) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let run = async move {
            let terms = server.terms();
            let mut ownership = Ownership::new(server, partition, terms);
            loop {
                tokio::select! {
                    biased;
                    _ = &mut stopped => break,
                    event = ownership.next() => if sender.send(event).is_err() {
                        break;
                    }
                }
            }
            // If this fails, the lease runs out.
            let _ = ownership.release().await;
        };
        let thread = thread::Builder::new().name("waterwheel-lease".into());
        let thread = thread.spawn(move || runtime.block_on(run))?;
        Ok(Owner {
            events,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Waits until this node has opened the partition. `None`: the thread has ended.
    pub(crate) fn opened(&self) -> Option<(Opening, Lease)> {
        loop {
            let mut event = self.events.recv().ok()?;
            while let Ok(next) = self.events.try_recv() {
                event = next;
            }
            if let Event::Opened(opening, lease) = event {
                return Some((opening, lease));
            }
        }
    }
}

impl Drop for Owner {
    /// Gives the partition back.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner")
    }
}
