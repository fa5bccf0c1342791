//! 100 000 orders, each closed after a time limit unless it is paid: one job per order, which the payment cancels.
//!
//! `cargo run --release -p waterwheel-schedule --example order_timeout [orders]`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use waterwheel_schedule::Scheduler;

/// A real shop would allow half an hour.
const TIME_TO_PAY: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() {
    let orders = std::env::args().nth(1).map_or(100_000, |orders| {
        orders.parse().expect("expected a number of orders")
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
    println!("placed {orders} orders in {:?}", start.elapsed());

    // Nine out of ten orders are paid in time.
    let paid = jobs
        .iter()
        .enumerate()
        .filter(|(n, job)| n % 10 != 0 && job.cancel())
        .count() as u64;
    println!("{paid} paid, {} still pending", scheduler.counts().pending);

    scheduler.drain().await;
    let closed = closed.load(Ordering::Relaxed);
    println!("{closed} closed, {:?} after the start", start.elapsed());
    assert_eq!(paid + closed, orders, "each order must be paid or closed");
    assert_eq!(early.load(Ordering::Relaxed), 0, "an order closed early");
}
