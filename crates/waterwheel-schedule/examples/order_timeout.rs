//! 100 000 orders, each closed after its time unless it is paid: a job an order, cancelled by the payment.
//!
//! `cargo run --release -p waterwheel-schedule --example order_timeout [orders]`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use waterwheel_schedule::Scheduler;

/// In a shop it is half an hour.
const TIME_TO_PAY: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() {
    let orders = std::env::args().nth(1).map_or(100_000, |orders| {
        orders.parse().expect("a number of orders")
    });
    let scheduler = Scheduler::new();
    let closed = Arc::new(AtomicU64::new(0));
    let early = Arc::new(AtomicU64::new(0));

    let start = Instant::now();
    let jobs: Vec<_> = (0..orders)
        .map(|_| {
            let (closed, early) = (Arc::clone(&closed), Arc::clone(&early));
            scheduler.after(TIME_TO_PAY).run(move |context| async move {
                closed.fetch_add(1, Ordering::Relaxed);
                if Instant::now() < context.scheduled() {
                    early.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    println!("{orders} orders placed in {:?}", start.elapsed());

    // Nine of ten are paid in time.
    let paid = jobs
        .iter()
        .enumerate()
        .filter(|(n, job)| n % 10 != 0 && job.cancel())
        .count() as u64;
    println!("{paid} paid, {} wait", scheduler.counts().pending);

    scheduler.drain().await;
    let closed = closed.load(Ordering::Relaxed);
    println!("{closed} closed after {:?}", start.elapsed());
    assert_eq!(paid + closed, orders, "each order is paid or closed");
    assert_eq!(early.load(Ordering::Relaxed), 0, "none is closed early");
}
