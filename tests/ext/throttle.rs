//! `throttle`: cases that tokio-stream's adapter does not support, or panics at.

use futures::stream::{self, Stream as _, StreamExt as _};
use waterwheel::ext::StreamExt;
use waterwheel::{Duration, Instant, Timer};

use crate::support::{assert_panics_here, ms};

#[tokio::test(start_paused = true)]
async fn two_items_keep_their_distance() {
    let start = Instant::now();
    let mut items = StreamExt::throttle(stream::iter(0..3), ms(10));
    for at in 0..3 {
        assert_eq!(items.next().await, Some(at));
        assert_eq!(start.elapsed(), ms(10) * at);
    }
    assert_eq!(items.next().await, None);
    assert_eq!(start.elapsed(), ms(30));
}

#[test]
fn a_throttle_of_zero_needs_no_timer_and_no_runtime() {
    let items = StreamExt::throttle(stream::iter(0..9), Duration::ZERO);
    let all: Vec<_> = futures::executor::block_on(items.collect());
    assert_eq!(all.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn the_longest_distance_lets_one_item_through() {
    let mut items = StreamExt::throttle(stream::iter(0..3), Duration::MAX);
    assert_eq!(items.next().await, Some(0));
    let month = Duration::from_secs(86_400 * 30);
    assert!(waterwheel::timeout(month, items.next()).await.is_err());
    assert_eq!(items.get_mut().next().await, Some(1));
    assert_eq!(items.get_ref().size_hint(), (1, Some(1)));
    assert_eq!(items.into_inner().next().await, Some(2));
}

#[tokio::test(start_paused = true)]
async fn the_distance_goes_on_when_a_wait_is_cancelled() {
    let start = Instant::now();
    let mut items = StreamExt::throttle(stream::iter(0..3), ms(10));
    assert_eq!(items.next().await, Some(0));
    assert!(waterwheel::timeout(ms(7), items.next()).await.is_err());
    assert_eq!(items.next().await, Some(1));
    assert_eq!(start.elapsed(), ms(10));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_timer_slows_nothing_down() {
    let start = Instant::now();
    let items = StreamExt::throttle(stream::iter(0..3), ms(10));
    Timer::current().shutdown();
    assert_eq!(items.collect::<Vec<_>>().await, [0, 1, 2]);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[test]
fn outside_of_a_runtime_the_caller_is_blamed() {
    assert_panics_here(&["no reactor running"], || {
        StreamExt::throttle(stream::empty::<u8>(), ms(1))
    });
}
