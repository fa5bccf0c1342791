//! What the feature `test-util` adds: tokio's clock controls at the crate root.

use waterwheel::{Duration, Instant, advance, pause, resume, sleep};

#[tokio::test]
async fn the_clock_is_paused_moved_and_let_go_by_names_of_the_crate_root() {
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
