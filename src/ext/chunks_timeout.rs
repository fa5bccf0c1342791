use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use pin_project_lite::pin_project;
use tokio::task::coop;
use tokio::time::Duration;

use crate::time::{Sleep, poll_delay, sleep};

pin_project! {
    /// The stream returned by [`StreamExt::chunks_timeout`](super::StreamExt::chunks_timeout).
    ///
    /// The stream is fused: after its end it keeps returning `None`.
    #[must_use = "streams do nothing unless polled"]
    #[derive(Debug)]
    pub struct ChunksTimeout<S: Stream> {
        // `None` from its end on.
        #[pin]
        stream: Option<S>,
        // Made with the first item, and kept from chunk to chunk.
        delay: Option<Sleep>,
        duration: Duration,
        items: Vec<S::Item>,
        max_size: usize,
    }
}

/// For how many items a chunk has room before it grows.
const ROOM: usize = 64;

/// After how many items of a chunk the time limit is looked at, though the stream is ready still. As many as a poll has coop budget for.
const LOOK: usize = 128;

impl<S: Stream> ChunksTimeout<S> {
    pub(super) fn new(stream: S, max_size: usize, duration: Duration) -> ChunksTimeout<S> {
        ChunksTimeout {
            stream: Some(stream),
            delay: None,
            duration,
            items: Vec::new(),
            max_size,
        }
    }

    /// Takes the items of the incomplete chunk.
    #[must_use]
    pub fn into_remainder(self: Pin<&mut Self>) -> Vec<S::Item> {
        mem::take(self.project().items)
    }
}

impl<S: Stream> Stream for ChunksTimeout<S> {
    type Item = Vec<S::Item>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let had_budget = coop::has_budget_remaining();
        loop {
            let Some(stream) = this.stream.as_mut().as_pin_mut() else {
                return Poll::Ready(None);
            };
            match stream.poll_next(context) {
                Poll::Ready(Some(item)) => {
                    if this.items.is_empty() {
                        match this.delay {
                            Some(delay) => delay.restart(*this.duration),
                            None => *this.delay = Some(sleep(*this.duration)),
                        }
                        this.items.reserve_exact((*this.max_size).min(ROOM));
                    }
                    this.items.push(item);
                    let length = this.items.len();
                    if length >= *this.max_size
                        || length % LOOK == 0 && is_over(this.delay, had_budget, context)
                    {
                        return Poll::Ready(Some(mem::take(this.items)));
                    }
                }
                Poll::Ready(None) => {
                    this.stream.set(None);
                    *this.delay = None;
                    let last = mem::take(this.items);
                    return Poll::Ready((!last.is_empty()).then_some(last));
                }
                Poll::Pending => break,
            }
        }
        if this.items.is_empty() || !is_over(this.delay, had_budget, context) {
            return Poll::Pending;
        }
        Poll::Ready(Some(mem::take(this.items)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let rest = usize::from(!self.items.is_empty());
        let (least, most) = match &self.stream {
            Some(stream) => stream.size_hint(),
            None => (0, Some(0)),
        };
        let most = most.and_then(|most| most.checked_add(rest));
        ((least / self.max_size).saturating_add(rest), most)
    }
}

/// Whether the time of the chunk is over. If not, the task is woken when it is.
fn is_over(delay: &mut Option<Sleep>, had_budget: bool, context: &mut Context<'_>) -> bool {
    match delay {
        Some(delay) => poll_delay(delay, had_budget, context).is_ready(),
        None => false,
    }
}
