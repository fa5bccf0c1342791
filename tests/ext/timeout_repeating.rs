//! `timeout_repeating`: cases that tokio-stream's adapter does not support, or panics at.

use std::task::Poll;

use futures::stream::{self, Stream as _, StreamExt as _};
use waterwheel::ext::StreamExt;
use waterwheel::{Instant, ManualClock, Timer, interval, interval_at};

use crate::support::{assert_settled, ms, own_timer, poll_once};
use crate::{burning, next_of_burning};

#[tokio::test(start_paused = true)]
async fn limits_elapse_at_each_tick_until_an_item_comes() {
    let start = Instant::now();
    let late = stream::once(Box::pin(waterwheel::sleep(ms(27)))).chain(stream::pending());
    let ticks = interval_at(start + ms(10), ms(10));
    let mut items = Box::pin(late.timeout_repeating(ticks));
    for at in [10, 20] {
        assert!(items.next().await.unwrap().is_err());
        assert_eq!(start.elapsed(), ms(at));
    }
    assert_eq!(items.next().await, Some(Ok(())));
    // After the item, one period each.
    for at in [37, 47, 57] {
        assert!(items.next().await.unwrap().is_err());
        assert_eq!(start.elapsed(), ms(at));
    }
}

#[tokio::test(start_paused = true)]
async fn the_interval_ends_with_the_stream() {
    let timer = own_timer();
    let late = stream::once(Box::pin(waterwheel::sleep(ms(7))));
    let mut items = late.timeout_repeating(timer.interval_at(timer.now() + ms(5), ms(5)));
    assert!(items.next().await.unwrap().is_err());
    assert_eq!(items.next().await, Some(Ok(())));
    assert_eq!(items.next().await, None);
    assert_eq!(assert_settled(&timer).fired(), 1);
    assert_eq!(
        (items.next().await, items.size_hint()),
        (None, (0, Some(0)))
    );
}

#[tokio::test(start_paused = true)]
async fn it_goes_by_the_clock_of_its_interval() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).start().unwrap();
    let ticks = timer.interval_at(clock.now() + ms(10), ms(10));
    let mut items = stream::pending::<u8>().timeout_repeating(ticks);
    for _ in 0..3 {
        assert!(poll_once(&mut items.next()).is_pending());
        clock.advance(ms(10));
        assert!(matches!(
            poll_once(&mut items.next()),
            Poll::Ready(Some(Err(_)))
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_burns_the_budget_still_elapses_repeatedly() {
    let items = burning(None).timeout_repeating(interval(ms(1)));
    assert!(next_of_burning(items).await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_stopped_timer_gives_one_last_error_that_says_so() {
    let timer = own_timer();
    let items = stream::iter([1]).chain(stream::pending());
    let mut items = items.timeout_repeating(timer.interval_at(timer.now() + ms(5), ms(5)));
    assert_eq!(items.next().await, Some(Ok(1)));
    assert!(!items.next().await.unwrap().unwrap_err().was_stopped());
    timer.shutdown();
    assert!(items.next().await.unwrap().unwrap_err().was_stopped());
    let silence = tokio::time::timeout(ms(1_000), items.next());
    assert!(silence.await.is_err(), "a second error");
}
