//! Terminates the backends that block a statement.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use waterwheel_durable_core::engine::planted::{self, Planted};

use super::{Database, Pid, Session, Terms};

/// Waits for the first of two futures. The first one is preferred.
pub(super) async fn first<A, B>(
    one: impl Future<Output = A>,
    other: impl Future<Output = B>,
) -> Result<A, B> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| match one.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => other.as_mut().poll(cx).map(Err),
    })
    .await
}

/// Waits for a call whose transaction is served by this backend. If it takes long, it may wait for the lock of a session whose process has stopped: the
/// backends that block it at that moment are terminated.
pub(super) async fn unblocking<D: Database, T>(
    db: &D,
    terms: Terms,
    pid: Pid,
    call: impl Future<Output = T>,
) -> T {
    let mut call = pin!(call);
    loop {
        let at: Duration = db.now() + terms.blocked_within();
        if let Ok(done) = first(call.as_mut(), db.sleep_until(at)).await {
            return done;
        }
        if planted::is(Planted::BlockersStay) {
            return call.await;
        }
        let terminate = async {
            // If it fails, it is repeated.
            if let Ok(mut session) = db.connect(terms.call_within()).await {
                let _ = session.terminate_blockers(pid).await;
            }
        };
        if let Ok(done) = first(call.as_mut(), terminate).await {
            return done;
        }
    }
}
