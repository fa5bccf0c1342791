//! The server: answers each call after the delay that the plan has for it, and closes connections
//! that say nothing.
//!
//! A connection is one task. It keeps a `Sleep` for each call in a [`FuturesUnordered`], so that
//! the end of the connection cancels its delays by dropping them. A call that is never answered
//! costs nothing once it has been read.

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

/// Serves until `closing`, then until the clients have closed their connections.
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

/// One connection, to the client's end of it or to the idle deadline, whichever comes first.
async fn connection<C: Clock>(socket: TcpStream, plan: Arc<Plan>, ledger: Arc<Ledger>) {
    let mut delays = FuturesUnordered::new();
    let conversation = async {
        socket.set_nodelay(true)?;
        let mut frames = Framed::new(socket, FrameCodec::new());
        let mut idle = pin!(C::sleep(plan.idle));
        loop {
            tokio::select! {
                // In this order: a frame that is here already beats a deadline that passed before
                // it was read.
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
                    // Whatever else is due goes out in the same write.
                    while let Some(Some(call)) = delays.next().now_or_never() {
                        frames.feed(Frame::Reply(call)).await?;
                        replies += 1;
                    }
                    // A client that reads nothing is as good as idle.
                    let flushed = C::timeout(plan.idle, frames.flush()).await;
                    flushed.map_err(io::Error::other)??;
                    ledger.replies_sent.add(replies);
                }
                () = &mut idle => return Ok(()),
            }
        }
    };
    // A socket that breaks ends its connection and nothing else; the client puts it on the books.
    let _: io::Result<()> = conversation.await;
    ledger.delays_cancelled.add(delays.len() as u64);
}

/// A call, once it is time to answer it.
async fn delayed<C: Clock>(call: CallId, delay: Duration, ledger: &Ledger) -> CallId {
    let armed = Instant::now();
    C::sleep(delay).await;
    ledger.delays_fired.add(1);
    if armed.elapsed() < delay {
        ledger.early_delays.add(1);
    }
    call
}
