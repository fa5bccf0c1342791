//! The server: answers each call after the delay that the plan has for it, and closes idle connections.
//!
//! A connection is one task. It keeps a `Sleep` for each call in a [`FuturesUnordered`]. The end of the connection drops these
//! sleeps, which cancels them. A call that the plan leaves unanswered takes no timer.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, SinkExt as _, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::codec::Framed;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::ledger::Ledger;
use crate::load;
use crate::plan::{CallId, Fate, Plan};
use crate::wire::{Frame, FrameCodec};

/// Accepts connections until `closing` is cancelled, then waits until the clients have closed theirs.
pub(crate) async fn serve<C: Clock>(
    listener: TcpListener,
    plan: Arc<Plan>,
    ledger: Arc<Ledger>,
    closing: CancellationToken,
) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (socket, _) = accepted.map_err(|error| {
                    load::not_set_up("the server cannot accept", &plan, error)
                })?;
                let (plan, ledger) = (Arc::clone(&plan), Arc::clone(&ledger));
                connections.spawn(connection::<C>(socket, plan, ledger));
            }
            () = closing.cancelled() => break,
        }
    }
    while let Some(ended) = connections.join_next().await {
        ended?;
    }
    Ok(())
}

/// Serves one connection until the client closes it or its idle deadline passes.
async fn connection<C: Clock>(socket: TcpStream, plan: Arc<Plan>, ledger: Arc<Ledger>) {
    let mut delays = FuturesUnordered::new();
    let conversation = async {
        socket.set_nodelay(true)?;
        let mut frames = Framed::new(socket, FrameCodec::new());
        let mut idle = pin!(C::sleep(plan.idle));
        loop {
            tokio::select! {
                // Frames first: a frame that has arrived is read although the idle deadline has passed meanwhile.
                biased;
                frame = frames.next() => {
                    let Some(frame) = frame.transpose()? else {
                        return Ok(());
                    };
                    ledger.frames.add(1);
                    C::push_back(idle.as_mut(), plan.idle);
                    let Frame::Call(call) = frame else {
                        continue;
                    };
                    if let Fate::Reply(delay) = plan.fate(call) {
                        ledger.delays_armed.add(1);
                        delays.push(delayed::<C>(call, delay, &ledger));
                    }
                }
                Some(call) = delays.next() => {
                    frames.feed(Frame::Reply(call)).await?;
                    let mut replies = 1;
                    // All other replies that are due go out in the same write.
                    while let Some(Some(call)) = delays.next().now_or_never() {
                        frames.feed(Frame::Reply(call)).await?;
                        replies += 1;
                    }
                    // A client that reads nothing counts as idle.
                    let flushed = C::timeout(plan.idle, frames.flush()).await;
                    flushed.ok_or(io::ErrorKind::TimedOut)??;
                    ledger.replies_sent.add(replies);
                }
                () = &mut idle => return Ok(()),
            }
        }
    };
    // A broken socket ends this connection only. The client counts it as lost.
    let _: io::Result<()> = conversation.await;
    ledger.delays_cancelled.add(delays.len() as u64);
}

/// Waits for the delay of a call, and returns the call.
async fn delayed<C: Clock>(call: CallId, delay: Duration, ledger: &Ledger) -> CallId {
    let armed = Instant::now();
    C::sleep(delay).await;
    ledger.delays_fired.add(1);
    if armed.elapsed() < delay {
        ledger.early_delays.add(1);
    }
    call
}
