//! The queue as a stream, in real time and in virtual time.

use futures::StreamExt;
use waterwheel::{DelayQueue, Instant};

use crate::support::{current_thread, ms, multi_thread};

#[tokio::test(start_paused = true)]
async fn the_stream_gives_each_item_at_its_tick_and_ends() {
    let mut queue = DelayQueue::new();
    let start = Instant::now();
    for n in [1_000, 2, 70_000, 2, 999, 3_700_000] {
        queue.insert(n, ms(n));
    }
    let mut seen = Vec::new();
    while let Some(expired) = queue.next().await {
        assert_eq!(start.elapsed(), ms(*expired.get_ref()));
        seen.push(expired.into_inner());
    }
    assert_eq!(seen, [2, 2, 999, 1_000, 70_000, 3_700_000]);
}

#[test]
fn no_item_is_early_or_lost_in_real_time() {
    for runtime in [current_thread(), multi_thread(2)] {
        runtime.block_on(async {
            let mut queue = DelayQueue::default();
            for n in 0..500 {
                queue.insert_at(n, Instant::now() + ms(n % 40));
            }
            let mut got = 0;
            while let Some(expired) = queue.next().await {
                assert!(expired.deadline() <= Instant::now());
                got += 1;
                if got % 50 == 0 {
                    queue.insert(0, ms(1));
                }
            }
            assert_eq!(got, 510);
        });
    }
}
