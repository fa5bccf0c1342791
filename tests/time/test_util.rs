//! The feature `test-util` adds tokio's clock controls at the crate root.

use waterwheel::{Duration, Instant, advance, pause, resume, sleep};

#[tokio::test]
async fn the_crate_root_pauses_advances_and_resumes_the_clock() {
    pause();
    let start = Instant::now();
    advance(Duration::from_secs(5)).await;
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(start.elapsed(), Duration::from_secs(3605));
    resume();
    sleep(Duration::from_millis(2)).await;
    assert!(start.elapsed() >= Duration::from_millis(3_605_002));
}
