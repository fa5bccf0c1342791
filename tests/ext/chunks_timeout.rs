//! `chunks_timeout`: cases that tokio-stream's adapter does not support, or panics at.

use futures::stream::{self, Stream as _, StreamExt as _};
use waterwheel::ext::StreamExt;
use waterwheel::{Duration, Instant, Timer};

use crate::support::{assert_panics_here, assert_settled, ms};
use crate::{burning, next_of_burning};

#[tokio::test(start_paused = true)]
async fn a_chunk_is_full_or_late_or_the_last() {
    let start = Instant::now();
    let slow = stream::unfold(10, |item| async move {
        waterwheel::sleep(ms(4)).await;
        (item < 13).then_some((item, item + 1))
    });
    let items = stream::iter([1, 2, 3, 4]).chain(slow);
    let mut chunks = Box::pin(items.chunks_timeout(3, ms(6)));
    assert_eq!(chunks.next().await, Some(vec![1, 2, 3]));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(chunks.next().await, Some(vec![4, 10]));
    assert_eq!(start.elapsed(), ms(6));
    assert_eq!(chunks.next().await, Some(vec![11, 12]));
    assert_eq!(start.elapsed(), ms(14));
    // The end of the stream came while the chunk was returned.
    assert_eq!((chunks.next().await, chunks.next().await), (None, None));
}

#[tokio::test(start_paused = true)]
async fn the_longest_duration_waits_for_a_full_chunk() {
    let items = stream::iter([1, 2, 3]).chain(stream::pending());
    let mut chunks = Box::pin(items.chunks_timeout(2, Duration::MAX));
    assert_eq!(chunks.next().await, Some(vec![1, 2]));
    let month = Duration::from_secs(86_400 * 30);
    assert!(waterwheel::timeout(month, chunks.next()).await.is_err());
    assert_eq!(chunks.as_mut().into_remainder(), [3]);
    assert_eq!(chunks.size_hint().0, 0);
}

#[tokio::test(start_paused = true)]
async fn the_largest_size_is_no_bound_and_takes_no_room() {
    let items = stream::iter(0..1_000).chain(stream::pending());
    let mut chunks = Box::pin(items.chunks_timeout(usize::MAX, ms(1)));
    assert_eq!(chunks.next().await.map(|chunk| chunk.len()), Some(1_000));
}

#[tokio::test(start_paused = true)]
async fn one_timer_serves_all_chunks_and_ends_with_the_stream() {
    let slow = stream::unfold(0, |item| async move {
        tokio::time::sleep(ms(2)).await;
        (item < 9).then_some((item, item + 1))
    });
    let mut chunks = Box::pin(slow.chunks_timeout(2, ms(60_000)));
    for length in [2, 2, 2, 2, 1] {
        assert_eq!(chunks.next().await.map(|chunk| chunk.len()), Some(length));
    }
    assert_eq!(chunks.next().await, None);
    let metrics = assert_settled(&Timer::current());
    assert_eq!((metrics.armed(), metrics.cancelled()), (1, 1));
}

/// tokio's channels return items as long as there is coop budget, and are pending then.
#[tokio::test(start_paused = true)]
async fn a_chunk_of_a_busy_channel_ends_in_time() {
    const ITEMS: usize = 100_000;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    (0..ITEMS).for_each(|item| sender.send(item).unwrap());
    let items = stream::poll_fn(move |context| receiver.poll_recv(context));
    let mut chunks = Box::pin(items.chunks_timeout(usize::MAX, Duration::ZERO));
    let first = chunks.next().await.unwrap().len();
    assert!(first <= 256, "{first} items");
}

#[tokio::test(start_paused = true)]
async fn a_chunk_of_what_is_always_ready_ends_in_time() {
    let mut chunks = stream::iter(0..100_000).chunks_timeout(usize::MAX, Duration::ZERO);
    let first = chunks.next().await.unwrap().len();
    assert!(first <= 256, "{first} items");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_burns_the_budget_has_its_chunk_in_time() {
    let chunks = burning(Some(7)).chunks_timeout(usize::MAX, Duration::ZERO);
    assert_eq!(next_of_burning(chunks).await, Some(vec![7]));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_timer_hands_out_what_there_is() {
    let items = stream::iter([1, 2, 3]).chain(stream::pending());
    let mut chunks = Box::pin(items.chunks_timeout(2, ms(5)));
    assert_eq!(chunks.next().await, Some(vec![1, 2]));
    Timer::current().shutdown();
    assert_eq!(chunks.next().await, Some(vec![3]));
}

#[test]
fn chunks_of_zero_items_are_refused_with_advice() {
    assert_panics_here(&["`max_size` must be non-zero", "usize::MAX"], || {
        stream::empty::<u8>().chunks_timeout(0, ms(1))
    });
}
