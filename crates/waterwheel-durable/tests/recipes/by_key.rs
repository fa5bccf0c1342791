//! A timer that is cancelled by its key.

use std::time::Duration;

use tempfile::tempdir;
use tokio::sync::mpsc;
use waterwheel_durable::{Drain, Policy};

use super::until;

include!("paid.rs");

#[tokio::test]
async fn an_order_that_is_paid_is_closed_by_no_timer() {
    let folder = tempdir().unwrap();
    let timers = Durable::open(folder.path().join("timers.db"));
    let timers = timers.await.unwrap();
    let (sender, mut closed) = mpsc::unbounded_channel();
    timers.handle("close", move |delivery| {
        let closed = delivery.json().map(|order: u64| sender.send(order));
        async { Ok(closed??) }
    });
    let policy = Policy::default().retention(1);
    let default = timers.create_namespace("default", policy).await.unwrap();
    let due = Duration::from_millis(300);
    for order in 1..=3_u64 {
        let timer = timers.after("close", due * 10_000_u32.pow(order as u32 % 2));
        let timer = timer.key(format!("order-{order}")).payload(&order);
        assert!(timer.insert().await.unwrap().is_new());
    }
    assert_eq!(paid(&timers, 1).await, Ok(Cancelled::Done));
    assert_eq!(paid(&timers, 1).await, Ok(Cancelled::NotFound));
    assert_eq!(paid(&timers, 4).await, Ok(Cancelled::NotFound));
    assert_eq!(closed.recv().await, Some(2));
    until(async || default.metrics().settled == 1).await;
    // It is kept, and so is its key; there is no timer.
    assert_eq!(paid(&timers, 2).await, Ok(Cancelled::NotFound));
    assert_eq!(paid(&timers, 3).await, Ok(Cancelled::Done));
    let drain = Drain::within(Duration::from_secs(60));
    timers.shutdown(drain).await.unwrap();
    assert_eq!(closed.recv().await, None);
}
