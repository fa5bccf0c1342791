//! Sessions that expire when their client falls silent: one task owns a delay queue, and other tasks use it through a handle.
//!
//! ```sh
//! cargo run --release --example delay_queue
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use waterwheel::delay_queue::{Handle, Key};
use waterwheel::{DelayQueue, Duration, Instant, sleep};

const IDLE: Duration = Duration::from_millis(100);
const CLIENTS: u64 = 1_000;

/// The key in the queue of each client's session.
type Sessions = Arc<Mutex<HashMap<u64, Key>>>;

/// A client that sends some messages, 30 ms apart, and then either leaves or falls silent.
async fn client(number: u64, sessions: Sessions, queue: Handle<u64>) {
    let key = {
        // Locked before the insertion, so that the session is known before it can expire.
        let mut sessions = sessions.lock().unwrap();
        let key = queue.insert(number, IDLE).expect("the queue is there");
        sessions.insert(number, key);
        key
    };
    for _ in 0..number % 10 {
        sleep(Duration::from_millis(30)).await;
        // `false` if the session has ended in the meantime: a stale key names no other session.
        if !queue.try_reset(&key, IDLE) {
            return;
        }
    }
    if number % 2 == 0 && queue.try_remove(&key).is_some() {
        sessions.lock().unwrap().remove(&number);
    }
}

#[tokio::main]
async fn main() {
    let start = Instant::now();
    let mut queue = DelayQueue::new();
    let handle = queue.handle();
    let sessions = Sessions::default();
    for number in 0..CLIENTS {
        tokio::spawn(client(number, Arc::clone(&sessions), handle.clone()));
    }
    // The queue ends when no handle is left and all sessions have ended.
    drop(handle);

    let (mut batch, mut ended, mut latest) = (Vec::new(), 0, Duration::ZERO);
    while queue.expired_many(&mut batch, 256).await > 0 {
        let now = Instant::now();
        for expired in batch.drain(..) {
            latest = latest.max(now - expired.deadline());
            let key = sessions.lock().unwrap().remove(expired.get_ref());
            assert_eq!(key, Some(expired.key()));
            ended += 1;
        }
    }
    let left = CLIENTS - ended;
    println!("{ended} sessions expired after {IDLE:?} of silence, {left} clients left before that");
    println!(
        "each session was handed out at most {latest:?} after its deadline; the run took {:?}",
        start.elapsed()
    );
    assert!(sessions.lock().unwrap().is_empty());
}
