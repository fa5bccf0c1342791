use futures_core::Stream;
use tokio::time::Duration;

use super::{ChunksTimeout, Throttle, Timeout, TimeoutRepeating};
use crate::Interval;

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
