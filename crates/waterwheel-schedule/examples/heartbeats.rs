//! 10 000 nodes that send a heartbeat each, at a fixed rate with jitter, and a watch over each node, moved on by every heartbeat.
//!
//! `cargo run --release -p waterwheel-schedule --example heartbeats [nodes]`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use waterwheel_schedule::{JobHandle, Scheduler};

const PERIOD: Duration = Duration::from_millis(200);
/// A node is lost after so long without a heartbeat. A machine that is busy must not fail the example.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() {
    let nodes = std::env::args()
        .nth(1)
        .map_or(10_000, |nodes| nodes.parse().expect("a number of nodes"));
    let scheduler = Scheduler::new();
    let (beats, lost) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));

    let watches: Arc<Vec<JobHandle<()>>> = Arc::new(
        (0..nodes)
            .map(|_| {
                let lost = Arc::clone(&lost);
                scheduler.after(PATIENCE).run(move |_| async move {
                    lost.fetch_add(1, Ordering::Relaxed);
                })
            })
            .collect(),
    );
    let heartbeats: Vec<_> = (0..nodes)
        .map(|node| {
            let (beats, watches) = (Arc::clone(&beats), Arc::clone(&watches));
            scheduler.every(PERIOD).jitter(PERIOD / 2).run(move |_| {
                beats.fetch_add(1, Ordering::Relaxed);
                watches[node].reschedule_after(PATIENCE);
                async {}
            })
        })
        .collect();

    tokio::time::sleep(Duration::from_secs(2)).await;
    let counts = scheduler.counts();
    println!(
        "{nodes} nodes, {} heartbeats, {} lost",
        beats.load(Ordering::Relaxed),
        lost.load(Ordering::Relaxed)
    );
    println!("{counts:?}");
    assert!(
        beats.load(Ordering::Relaxed) >= nodes as u64,
        "each node has sent one"
    );
    assert_eq!(lost.load(Ordering::Relaxed), 0);

    drop(heartbeats);
    let never = scheduler.shutdown_now();
    println!("{} jobs were ended by the shutdown", never.len());
    assert!(scheduler.await_termination(Duration::from_secs(60)).await);
}
