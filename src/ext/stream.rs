use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pin_project_lite::pin_project;
use tokio::task::coop;
use tokio::time::Duration;

use super::Timeout;
use crate::error::Elapsed;
use crate::time::{Interval, Sleep, poll_delay, poll_limit, sleep};

/// Adds time limits, throttling and time-limited chunks to all streams.
///
/// The counterpart of the methods of tokio-stream's `StreamExt` that need a timer. To use it next to another `StreamExt`, import
/// one of the two as `_`, as in `use futures::StreamExt as _;`. A method that both traits have must be called through its trait:
/// `waterwheel::ext::StreamExt::timeout(stream, limit)`.
pub trait StreamExt: Stream {
    /// Yields an `Err` when no item has arrived for `duration`, counted from this call for the first item, and from the previous
    /// item for the others.
    ///
    /// The stream continues after an `Err`. There is at most one `Err` between two items: after it, the stream is pending until
    /// its next item. [`timeout_repeating`](StreamExt::timeout_repeating) repeats the `Err`. To end at the first `Err`, use
    /// `take_while`.
    ///
    /// If an item and the limit come at the same time, the item wins. When `duration` has passed, the `Err` is
    /// [due](crate::time#when-a-timer-is-due) at the tick.
    ///
    /// # Cancellation
    ///
    /// Dropping the returned stream drops the inner stream and cancels the timer. A future for the next item may be dropped; the
    /// time limit keeps running.
    ///
    /// # Panics
    ///
    /// Panics at the call if it is made outside of a tokio runtime, if the runtime was built without `enable_time`, or if the
    /// runtime's timer was shut down or drained.
    ///
    /// ```
    /// use futures::StreamExt as _;
    /// use waterwheel::Duration;
    /// use waterwheel::ext::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let silent = futures::stream::iter([1, 2]).chain(futures::stream::pending());
    /// let mut items = silent.timeout(Duration::from_millis(5));
    /// assert_eq!(items.next().await, Some(Ok(1)));
    /// assert_eq!(items.next().await, Some(Ok(2)));
    /// assert!(matches!(items.next().await, Some(Err(_elapsed))));
    /// # }
    /// ```
    #[track_caller]
    fn timeout(self, duration: Duration) -> Timeout<Self>
    where
        Self: Sized,
    {
        Timeout::new(self, duration)
    }

    /// Yields an `Err` at each tick of `interval` at which no item has arrived. Each item resets the interval, so that its next
    /// tick comes one period later.
    ///
    /// The first tick is that of the interval. An [`interval`](crate::interval()) ticks at once, so use
    /// [`interval_at`](crate::interval_at) to give the first item its time. If an item and a tick come at the same time, the item
    /// wins.
    ///
    /// The limit runs on the interval's timer. If that timer is stopped, the last `Err` reports it by
    /// [`was_stopped`](crate::error::Elapsed::was_stopped), and the stream continues without a limit.
    ///
    /// # Cancellation
    ///
    /// Behaves like [`timeout`](StreamExt::timeout).
    ///
    /// ```
    /// use futures::StreamExt as _;
    /// use waterwheel::ext::StreamExt;
    /// use waterwheel::{Duration, Instant, interval_at};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let limit = Duration::from_millis(5);
    /// let silent = futures::stream::iter([1]).chain(futures::stream::pending());
    /// let mut items = silent.timeout_repeating(interval_at(Instant::now() + limit, limit));
    /// assert_eq!(items.next().await, Some(Ok(1)));
    /// assert!(items.next().await.unwrap().is_err());
    /// assert!(items.next().await.unwrap().is_err());
    /// # }
    /// ```
    fn timeout_repeating(self, interval: Interval) -> TimeoutRepeating<Self>
    where
        Self: Sized,
    {
        TimeoutRepeating::new(self, interval)
    }

    /// Delays items so that at least `duration` lies between two of them. The first item is not delayed.
    ///
    /// The time is counted from when an item is returned, so a consumer that takes longer than `duration` for an item does not
    /// wait for the next one. A duration of zero changes nothing and uses no timer.
    ///
    /// # Cancellation
    ///
    /// Behaves like [`timeout`](StreamExt::timeout).
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`timeout`](StreamExt::timeout), unless `duration` is zero.
    ///
    /// ```
    /// use futures::StreamExt as _;
    /// use waterwheel::{Duration, Instant};
    /// use waterwheel::ext::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let start = Instant::now();
    /// let distance = Duration::from_millis(5);
    /// let items: Vec<_> = futures::stream::iter(1..=3).throttle(distance).collect().await;
    /// assert_eq!(items, [1, 2, 3]);
    /// assert!(start.elapsed() >= 2 * distance);
    /// # }
    /// ```
    #[track_caller]
    fn throttle(self, duration: Duration) -> Throttle<Self>
    where
        Self: Sized,
    {
        Throttle::new(self, duration)
    }

    /// Collects items into chunks that are limited by size and by time.
    ///
    /// A chunk is returned when it has `max_size` items, when `duration` has passed since its first item, or when the stream
    /// ends. No chunk is empty.
    ///
    /// The time limit also holds under load: it is checked when the stream is pending, and after every 128 items while the stream
    /// is ready.
    ///
    /// # Cancellation
    ///
    /// Dropping the returned stream drops the items collected so far; [`ChunksTimeout::into_remainder`] takes them out first.
    ///
    /// # Panics
    ///
    /// Panics at the call if `max_size` is zero. Panics at the first item if there is no tokio runtime, if the runtime was built
    /// without `enable_time`, or if the runtime's timer was shut down or drained by then.
    ///
    /// ```
    /// use futures::StreamExt as _;
    /// use waterwheel::Duration;
    /// use waterwheel::ext::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let silent = futures::stream::iter(1..=4).chain(futures::stream::pending());
    /// let mut chunks = silent.chunks_timeout(3, Duration::from_millis(5));
    /// assert_eq!(chunks.next().await, Some(vec![1, 2, 3]));
    /// assert_eq!(chunks.next().await, Some(vec![4]));
    /// # }
    /// ```
    #[track_caller]
    fn chunks_timeout(self, max_size: usize, duration: Duration) -> ChunksTimeout<Self>
    where
        Self: Sized,
    {
        assert!(
            max_size > 0,
            "`max_size` must be non-zero: for chunks limited only by time, pass `usize::MAX`"
        );
        ChunksTimeout::new(self, max_size, duration)
    }
}

impl<S: Stream + ?Sized> StreamExt for S {}

pin_project! {
    /// The stream returned by [`StreamExt::throttle`](super::StreamExt::throttle).
    ///
    /// The stream is not fused: polling it after its end polls the inner stream again.
    #[must_use = "streams do nothing unless polled"]
    #[derive(Debug)]
    pub struct Throttle<S> {
        #[pin]
        stream: S,
        // `None` for a duration of zero.
        delay: Option<Sleep>,
        duration: Duration,
        // Whether the next item has to wait for `delay`.
        waits: bool,
    }
}

impl<S> Throttle<S> {
    #[track_caller]
    pub(super) fn new(stream: S, duration: Duration) -> Throttle<S> {
        // No closure, which would be blamed for a panic in the caller's place.
        let delay = match duration {
            Duration::ZERO => None,
            _ => Some(sleep(duration)),
        };
        Throttle {
            stream,
            delay,
            duration,
            waits: false,
        }
    }

    /// Returns a reference to the inner stream.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// Returns a mutable reference to the inner stream. An item that is taken from it directly does
    /// not count for the throttling.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Consumes the `Throttle`, and returns the inner stream.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: Stream> Stream for Throttle<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        let Some(delay) = this.delay else {
            return this.stream.poll_next(context);
        };
        if *this.waits {
            ready!(Pin::new(&mut *delay).poll(context));
            *this.waits = false;
        }
        let item = ready!(this.stream.poll_next(context));
        if item.is_some() {
            delay.restart(*this.duration);
            *this.waits = true;
        }
        Poll::Ready(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.stream.size_hint()
    }
}

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

pin_project! {
    /// The stream returned by [`StreamExt::timeout_repeating`](super::StreamExt::timeout_repeating).
    ///
    /// The stream is fused: after its end it keeps returning `None`.
    #[must_use = "streams do nothing unless polled"]
    #[derive(Debug)]
    pub struct TimeoutRepeating<S> {
        // `None` from its end on.
        #[pin]
        stream: Option<S>,
        // `None` from the end of the stream on, and when the `Err` has been returned that says that the timer was stopped.
        interval: Option<Interval>,
    }
}

impl<S> TimeoutRepeating<S> {
    pub(super) fn new(stream: S, interval: Interval) -> TimeoutRepeating<S> {
        TimeoutRepeating {
            stream: Some(stream),
            interval: Some(interval),
        }
    }
}

impl<S: Stream> Stream for TimeoutRepeating<S> {
    type Item = Result<S::Item, Elapsed>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let Some(stream) = this.stream.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        let had_budget = coop::has_budget_remaining();
        match stream.poll_next(context) {
            Poll::Ready(Some(item)) => {
                if let Some(interval) = this.interval {
                    interval.reset();
                }
                return Poll::Ready(Some(Ok(item)));
            }
            Poll::Ready(None) => {
                *this.interval = None;
                this.stream.set(None);
                return Poll::Ready(None);
            }
            Poll::Pending => {}
        }
        let Some(interval) = this.interval else {
            return Poll::Pending;
        };
        let tick = poll_fn(|context| Pin::new(&mut *interval).poll_next(context));
        let was_stopped = ready!(poll_limit(tick, had_budget, context)).is_none();
        if was_stopped {
            interval.assert_was_stopped();
            *this.interval = None;
        }
        Poll::Ready(Some(Err(Elapsed::new(was_stopped))))
    }

    /// There is no upper bound, since any number of `Err` may come before each item.
    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.stream {
            Some(stream) => (stream.size_hint().0, None),
            None => (0, Some(0)),
        }
    }
}
