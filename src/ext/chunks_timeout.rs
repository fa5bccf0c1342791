use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pin_project_lite::pin_project;
use tokio::time::Duration;

use crate::time::{Sleep, sleep};

pin_project! {
    /// The stream of [`StreamExt::chunks_timeout`](super::StreamExt::chunks_timeout). Fused: after its end it goes on returning
    /// `None`.
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

    /// Takes out the items of the chunk that is not complete.
    #[must_use]
    pub fn into_remainder(self: Pin<&mut Self>) -> Vec<S::Item> {
        mem::take(self.project().items)
    }
}

impl<S: Stream> Stream for ChunksTimeout<S> {
    type Item = Vec<S::Item>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
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
                    if this.items.len() >= *this.max_size {
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
        if this.items.is_empty() {
            return Poll::Pending;
        }
        if let Some(delay) = this.delay {
            ready!(Pin::new(delay).poll(context));
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
