use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::give_way::give_way;
use super::shared::Shared;
use super::worker::unwound;

/// Turns the engine whenever its time has come, until it is closed or the runtime ends.
pub(super) fn drive(shared: &Arc<Shared>) -> impl Future<Output = ()> + use<> {
    // Before the first poll: a runtime that ends may drop a task that it has never polled.
    let end = End(Arc::clone(shared));
    turn(end)
}

async fn turn(end: End) {
    let shared = &end.0;
    while let Some((next, turned)) = shared.turn() {
        if next.is_none_or(|at| at > shared.clock.boot()) {
            let sleep = shared.clock.sleep_until(&shared.timer, next, turned);
            let mut sleep = pin!(sleep);
            let mut nudge = pin!(shared.nudge.notified());
            let slept = poll_fn(|context| match nudge.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Ok(())),
                Poll::Pending => sleep.as_mut().poll(context),
            })
            .await;
            if slept.is_err() {
                return;
            }
        } else {
            // After the tasks that this turn has spawned.
            give_way().await;
        }
    }
}

/// The driver ends with its runtime, if not by a shutdown. Nothing is delivered from then on, so nothing is taken any more either.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        // Each part is foreign in part: wakers, and the hook. None of it keeps the store from being closed.
        unwound(|| self.0.runtime_ended());
        unwound(|| self.0.close());
    }
}
