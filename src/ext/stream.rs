use futures_core::Stream;
use tokio::time::Duration;

use super::{ChunksTimeout, Throttle, Timeout, TimeoutRepeating};
use crate::Interval;

/// Streams with a time limit for each item, a least distance of items, and chunks that wait for a limited time.
///
/// From tokio-stream's `StreamExt`, of which these are the methods that need a timer. Import both as `_`, or the one whose other
/// methods are used; a call that both have must name its trait: `waterwheel::ext::StreamExt::timeout(stream, limit)`.
pub trait StreamExt: Stream {
    /// Gives an `Err` when no item has come for `duration`: since the call for the first item, and since the item before for the
    /// others.
    ///
    /// After an `Err` the stream is still polled. There is one `Err` at most between two items: after it, the stream is pending
    /// until its next item; [`timeout_repeating`](StreamExt::timeout_repeating) has more. To end with the first `Err`, use
    /// `take_while`.
    ///
    /// Of an item and a limit that come at once the item wins. When `duration` has passed, the `Err` is
    /// [due](crate::time#when-a-timer-is-due) at the tick.
    ///
    /// # Cancellation
    ///
    /// Dropping the stream returned drops the one in it, and cancels the timer. A future for its next item may be dropped: the time
    /// limit goes on.
    ///
    /// # Panics
    ///
    /// At the call: outside a tokio runtime, in one without `enable_time`, or if the runtime's timer was shut down.
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

    /// Gives an `Err` at each tick of `interval` at which no item has come. Each item resets the interval: its next tick comes a period
    /// later.
    ///
    /// The first tick is that of the interval. One by [`interval`](crate::interval()) ticks at once, so begin with
    /// [`interval_at`](crate::interval_at) to give the first item its time. Of an item and a tick that come at once the item wins.
    ///
    /// It is on the interval's timer. If that is stopped, the last `Err` says so, by
    /// [`was_stopped`](crate::error::Elapsed::was_stopped), and the stream goes on without a limit.
    ///
    /// # Cancellation
    ///
    /// As [`timeout`](StreamExt::timeout).
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

    /// Leaves at least `duration` between two items. The first item does not wait.
    ///
    /// The time runs from when an item is returned, so a consumer that takes longer than `duration` for an item does not wait for
    /// the next. A duration of zero changes nothing and uses no timer.
    ///
    /// # Cancellation
    ///
    /// As [`timeout`](StreamExt::timeout).
    ///
    /// # Panics
    ///
    /// As [`timeout`](StreamExt::timeout), unless `duration` is zero.
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

    /// Collects items into chunks. A chunk is returned when it has `max_size` items, when `duration` has passed since its first
    /// item, or when the stream ends. No chunk is empty.
    ///
    /// The time limit holds under load as well: it is looked at when the stream is pending, and after each 128 items while it is ready.
    ///
    /// # Cancellation
    ///
    /// Dropping the stream returned drops the items that it has collected; [`ChunksTimeout::into_remainder`] takes them out.
    ///
    /// # Panics
    ///
    /// At the call if `max_size` is zero. When the first item comes: outside a tokio runtime, in one without `enable_time`, or if
    /// the runtime's timer was shut down by then.
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
            "`max_size` must be non-zero: a chunk has one item at least. For chunks that only time limits, pass `usize::MAX`"
        );
        ChunksTimeout::new(self, max_size, duration)
    }
}

impl<S: Stream + ?Sized> StreamExt for S {}
