//! 10 000 nodes each send heartbeats, at a fixed rate with jitter. A timeout per node is pushed back by every heartbeat.
//!
//! `cargo run --release -p waterwheel-schedule --example heartbeats [nodes]`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use waterwheel_schedule::{JobHandle, Scheduler};

const PERIOD: Duration = Duration::from_millis(200);
/// A node counts as lost after this time without a heartbeat. It is long, so that a busy machine does not fail the example.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() {
    let nodes = std::env::args().nth(1).map_or(10_000, |nodes| {
        nodes.parse().expect("expected a number of nodes")
    });
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
        "{nodes} nodes, {} heartbeats, {} nodes lost",
        beats.load(Ordering::Relaxed),
        lost.load(Ordering::Relaxed)
    );
    println!("{counts:?}");
    assert!(
        beats.load(Ordering::Relaxed) >= nodes as u64,
        "each node must have sent a heartbeat"
    );
    assert_eq!(lost.load(Ordering::Relaxed), 0);

    drop(heartbeats);
    let never = scheduler.shutdown_now();
    println!("the shutdown ended {} jobs", never.len());
    assert!(scheduler.await_termination(Duration::from_secs(60)).await);
}
