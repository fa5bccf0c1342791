//! `timeout` and `timeout_at` of a future.

use std::future::{pending, ready};

use waterwheel::ext::FutureExt;
use waterwheel::{Duration, Instant, Timeout};

use crate::support::{assert_panics_here, ms};

#[tokio::test(start_paused = true)]
async fn a_future_has_its_time_limit_by_a_method() {
    let start = Instant::now();
    assert_eq!(ready(7).timeout(ms(5)).await, Ok(7));
    assert!(pending::<()>().timeout(ms(5)).await.is_err());
    assert_eq!(start.elapsed(), ms(5));
    assert!(pending::<()>().timeout_at(start + ms(9)).await.is_err());
    assert_eq!(start.elapsed(), ms(9));
    assert_eq!(ready(7).timeout(Duration::MAX).await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn the_future_is_that_of_the_free_function() {
    let limited: Timeout<_> = pending::<u8>().timeout(ms(5));
    let inner: std::future::Pending<u8> = limited.into_inner();
    assert!(inner.timeout(ms(1)).await.is_err());
}

#[test]
fn a_method_blames_its_caller_outside_of_a_runtime() {
    assert_panics_here(&["no reactor running"], || ready(1).timeout(ms(1)));
    let now = Instant::now();
    assert_panics_here(&["no reactor running"], || ready(1).timeout_at(now));
}
