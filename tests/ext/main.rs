//! The methods that `waterwheel::ext` adds to futures and streams, compared to tokio-stream's own. Time is virtual.

#[path = "../support/mod.rs"]
mod support;

mod beside_tokio_stream;
mod chunks_timeout;
mod future;
mod throttle;
mod timeout;
mod timeout_repeating;

use std::future::poll_fn;
use std::task::Poll;

use futures::stream::{self, Stream, StreamExt as _};

/// A stream that returns this item, if any, and then nothing: each poll uses up the budget of its task, and wakes it.
fn burning(mut item: Option<u8>) -> impl Stream<Item = u8> + Unpin {
    stream::poll_fn(move |context| {
        if item.is_none() {
            support::burn_the_budget(context);
        }
        context.waker().wake_by_ref();
        item.take()
            .map_or(Poll::Pending, |item| Poll::Ready(Some(item)))
    })
}

/// The next item of a stream that wakes its task at each poll.
async fn next_of_burning<S: Stream + Unpin>(mut stream: S) -> Option<S::Item> {
    let mut rounds = 0;
    poll_fn(|context| {
        rounds += 1;
        assert!(rounds < 1_000, "it never comes");
        stream.poll_next_unpin(context)
    })
    .await
}
