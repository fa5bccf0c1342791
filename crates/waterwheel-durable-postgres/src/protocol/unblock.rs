//! Terminates the backends that block a statement.

use std::pin::pin;

use waterwheel_durable_core::engine::planted::{self, Planted};

use super::{Database, Pid, Session, Terms};

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
        let at = db.now() + terms.blocked_within();
        tokio::select! {
            biased;
            done = &mut call => return done,
            () = db.sleep_until(at) => {}
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
        tokio::select! {
            biased;
            done = &mut call => return done,
            () = terminate => {}
        }
    }
}
