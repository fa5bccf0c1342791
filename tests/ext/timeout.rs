//! `timeout` of a stream: cases that tokio-stream's adapter does not support, or panics at.

use futures::stream::{self, Stream as _, StreamExt as _};
use waterwheel::ext::StreamExt;
use waterwheel::{Duration, Instant, Timer};

use crate::support::{assert_panics_here, assert_settled, current_thread, inside, ms};
use crate::{burning, next_of_burning};

#[tokio::test(start_paused = true)]
async fn one_limit_elapses_between_two_items() {
    let start = Instant::now();
    let late = stream::once(Box::pin(waterwheel::sleep(ms(20)))).chain(stream::pending());
    let mut items = Box::pin(StreamExt::timeout(late, ms(5)));
    assert!(items.next().await.unwrap().is_err());
    assert_eq!(start.elapsed(), ms(5));
    assert_eq!(items.next().await, Some(Ok(())));
    assert_eq!(start.elapsed(), ms(20));
    assert!(items.next().await.unwrap().is_err());
    assert_eq!(start.elapsed(), ms(25));
    let silence = waterwheel::timeout(ms(1_000), items.next());
    assert!(silence.await.is_err(), "a second limit elapsed");
}

#[tokio::test(start_paused = true)]
async fn the_timer_is_cancelled_at_the_end_of_the_stream() {
    let mut waits = true;
    let one = stream::poll_fn(move |context| {
        context.waker().wake_by_ref();
        match std::mem::replace(&mut waits, false) {
            true => std::task::Poll::Pending,
            false => std::task::Poll::Ready(None::<u8>),
        }
    });
    let mut items = StreamExt::timeout(one, ms(5));
    assert_eq!(items.next().await, None);
    let metrics = assert_settled(&Timer::current());
    assert_eq!((metrics.armed(), metrics.cancelled()), (1, 1));
    assert_eq!(
        (items.next().await, items.size_hint()),
        (None, (0, Some(0)))
    );
}

#[tokio::test(start_paused = true)]
async fn the_longest_duration_never_elapses() {
    let mut items = StreamExt::timeout(stream::iter([1]).chain(stream::pending()), Duration::MAX);
    assert_eq!(items.next().await, Some(Ok(1)));
    let month = Duration::from_secs(86_400 * 30);
    assert!(waterwheel::timeout(month, items.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_limit_goes_on_when_a_wait_is_cancelled() {
    let start = Instant::now();
    let mut items = StreamExt::timeout(stream::pending::<u8>(), ms(10));
    for _ in 0..3 {
        assert!(waterwheel::timeout(ms(3), items.next()).await.is_err());
    }
    assert!(items.next().await.unwrap().is_err());
    assert_eq!(start.elapsed(), ms(10));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_burns_the_budget_still_elapses() {
    let items = StreamExt::timeout(burning(None), Duration::ZERO);
    assert!(next_of_burning(items).await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_stopped_timer_gives_one_error_that_says_so() {
    let mut items = StreamExt::timeout(stream::iter([1]).chain(stream::pending()), ms(5));
    Timer::current().shutdown();
    assert_eq!(items.next().await, Some(Ok(1)));
    assert!(items.next().await.unwrap().unwrap_err().was_stopped());
    let silence = tokio::time::timeout(ms(1_000), items.next());
    assert!(silence.await.is_err(), "a second error");
}

#[test]
fn outside_of_a_runtime_the_caller_is_blamed() {
    let nothing = stream::empty::<u8>;
    assert_panics_here(&["no reactor running"], || {
        StreamExt::timeout(nothing(), ms(1))
    });
    let runtime = current_thread();
    inside(&runtime, || Timer::current().shutdown());
    assert_panics_here(&["cannot use the timer of this runtime"], || {
        inside(&runtime, || StreamExt::timeout(nothing(), ms(1)))
    });
}
