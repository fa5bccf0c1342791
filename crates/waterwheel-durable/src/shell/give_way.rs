use std::future::poll_fn;
use std::task::Poll;

/// To the back of the worker's queue, from which another worker takes it if what runs first blocks this one. `tokio::task::yield_now` would put it where
/// only this worker finds it.
pub(super) async fn give_way() {
    let mut has_waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
