//! The client: many calls at once over each connection. Each reply has the id of its call.
//!
//! A call that times out is dropped where it waits. On drop it removes its entry from the connection's table. A later reply
//! finds no entry, and the client counts and drops it.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio_util::codec::{Framed, FramedRead, FramedWrite};

use crate::clock::Clock;
use crate::ledger::Ledger;
use crate::plan::{CallId, Plan};
use crate::wire::{Frame, FrameCodec};

/// The most frames that go out in one write.
const BATCH: usize = 64;

/// One connection to the server. It closes when this is dropped.
pub(crate) struct Client {
    number: u32,
    calls: AtomicU32,
    outgoing: mpsc::Sender<Frame>,
    waiting: Arc<Waiting>,
}

impl Client {
    /// Also returns the future that serves the connection. The caller spawns it.
    pub(crate) async fn connect<C: Clock>(
        address: SocketAddr,
        number: u32,
        plan: Arc<Plan>,
        ledger: Arc<Ledger>,
    ) -> io::Result<(Client, impl Future<Output = ()> + Send)> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let (outgoing, frames) = mpsc::channel(plan.concurrency as usize);
        let waiting = Arc::new(Waiting {
            table: Mutex::new(Some(HashMap::new())),
            ledger: Arc::clone(&ledger),
        });
        let client = Client {
            number,
            calls: AtomicU32::new(0),
            outgoing,
            waiting: Arc::clone(&waiting),
        };
        let upkeep = async move {
            let (incoming, outgoing) = socket.into_split();
            let mut reading = pin!(read(incoming, &waiting));
            let written = tokio::select! {
                // The server hung up before the client had shut its half.
                _ = &mut reading => None,
                written = write::<C>(outgoing, frames, &plan, &ledger) => Some(written),
            };
            let lost = match written {
                // Our half is shut, and the server's last replies are on their way. If the server hangs up with unread frames
                // of ours, the system may discard these replies, and reading fails.
                Some(Ok(())) => reading.await.is_err(),
                Some(Err(_)) | None => true,
            };
            if lost {
                ledger.connections_lost.add(1);
            }
            waiting.close();
        };
        Ok((client, upkeep))
    }

    pub(crate) fn next_call(&self) -> CallId {
        CallId::new(self.number, self.calls.fetch_add(1, Relaxed))
    }

    /// Waits for the reply without a limit of time. The caller sets one. `None` if the connection is lost.
    pub(crate) async fn call(&self, call: CallId) -> Option<()> {
        let (reply, replied) = oneshot::channel();
        let mut entry = self.waiting.enter(call, reply)?;
        self.outgoing.send(Frame::Call(call)).await.ok()?;
        replied.await.ok()?;
        entry.answered = true;
        Some(())
    }
}

/// Sends calls and heartbeats until the [`Client`] is gone, then shuts this half of the socket.
async fn write<C: Clock>(
    socket: OwnedWriteHalf,
    mut frames: mpsc::Receiver<Frame>,
    plan: &Plan,
    ledger: &Ledger,
) -> io::Result<()> {
    let mut wire = FramedWrite::new(socket, FrameCodec::new());
    let mut heartbeats = pin!(C::heartbeats(plan.heartbeat));
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        tokio::select! {
            received = frames.recv_many(&mut batch, BATCH) => {
                if received == 0 {
                    return wire.close().await;
                }
                for frame in batch.drain(..) {
                    wire.feed(frame).await?;
                }
                wire.flush().await?;
            }
            Some(()) = heartbeats.next() => {
                wire.send(Frame::Heartbeat).await?;
                ledger.heartbeats.add(1);
            }
        }
    }
}

/// Hands each reply to its call until the server closes its half.
async fn read(socket: OwnedReadHalf, waiting: &Waiting) -> io::Result<()> {
    let mut wire = FramedRead::new(socket, FrameCodec::new());
    while let Some(frame) = wire.next().await {
        if let Frame::Reply(call) = frame? {
            waiting.answer(call);
        }
    }
    Ok(())
}

/// Connects, and returns a future that sends one frame and waits until the server hangs up. The server must do that after the
/// idle deadline, and not before.
pub(crate) async fn connect_silently(
    address: SocketAddr,
    plan: Arc<Plan>,
    ledger: Arc<Ledger>,
) -> io::Result<impl Future<Output = ()> + Send> {
    // Read before the server can know of the connection. On a busy machine the server may accept it, and arm the idle deadline,
    // long before this task continues after `connect`.
    let arrived = Instant::now();
    let socket = TcpStream::connect(address).await?;
    Ok(async move {
        let mut wire = Framed::new(socket, FrameCodec::new());
        // If this fails, the server has hung up already.
        let _: io::Result<()> = wire.send(Frame::Heartbeat).await;
        while let Some(Ok(_)) = wire.next().await {}
        ledger.silent_closed.add(1);
        if arrived.elapsed() < plan.idle {
            ledger.silent_closed_early.add(1);
        }
    })
}

/// The calls of one connection that wait for a reply. The table is `None` once the connection is closed.
struct Waiting {
    table: Mutex<Option<HashMap<CallId, oneshot::Sender<()>>>>,
    ledger: Arc<Ledger>,
}

impl Waiting {
    fn enter(&self, call: CallId, reply: oneshot::Sender<()>) -> Option<Entry<'_>> {
        self.table().as_mut()?.insert(call, reply);
        Some(Entry {
            waiting: self,
            call,
            answered: false,
        })
    }

    fn answer(&self, call: CallId) {
        let reply = self.table().as_mut().and_then(|table| table.remove(&call));
        match reply {
            // If the call times out at this moment, it finds its entry removed and counts the reply as late.
            Some(reply) => drop(reply.send(())),
            None => self.ledger.late_replies.add(1),
        }
    }

    /// Ends every call that still waits.
    fn close(&self) {
        // The senders are dropped after the lock is released, since each drop wakes a caller.
        let table = self.table().take();
        drop(table);
    }

    fn table(&self) -> MutexGuard<'_, Option<HashMap<CallId, oneshot::Sender<()>>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call's entry in the table, removed on drop.
struct Entry<'a> {
    waiting: &'a Waiting,
    call: CallId,
    answered: bool,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let mut table = self.waiting.table();
        if table
            .as_mut()
            .is_some_and(|table| table.remove(&self.call).is_none())
        {
            self.waiting.ledger.late_replies.add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;
    use std::time::Duration;

    use futures::poll;

    use super::*;
    use crate::flags::Flags;
    use crate::ledger::Tally;

    /// Runs a server that hangs up `patience` after it has accepted, and a silent client that continues only after that.
    async fn silence(idle: Duration, patience: Duration) -> Tally {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("bound");
        let server = thread::spawn(move || {
            let accepted = listener.accept();
            thread::sleep(patience);
            drop(accepted);
        });
        let plan = Arc::new(Plan {
            idle,
            ..Plan::new(&Flags::default())
        });
        let ledger = Arc::new(Ledger::default());
        let mut connecting = pin!(connect_silently(address, plan, Arc::clone(&ledger)));
        assert!(poll!(&mut connecting).is_pending());
        server.join().expect("no panic");
        connecting.await.expect("a connection").await;
        ledger.tally()
    }

    #[tokio::test]
    async fn a_client_that_continues_late_calls_no_close_early() {
        let idle = Duration::from_millis(50);
        let tally = silence(idle, idle).await;
        assert_eq!((tally.silent_closed, tally.silent_closed_early), (1, 0));
    }

    #[tokio::test]
    async fn a_server_that_hangs_up_before_the_idle_deadline_is_early() {
        let tally = silence(Duration::from_secs(3600), Duration::ZERO).await;
        assert_eq!((tally.silent_closed, tally.silent_closed_early), (1, 1));
    }
}
