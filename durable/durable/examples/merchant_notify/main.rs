//! Notifies two merchants of payments, each in a namespace of its own: one whose server fails each third request, and one whose server is down until it is
//! repaired.
//!
//! ```sh
//! cargo run --release -p waterwheel-durable --example merchant_notify               # some seconds
//! cargo run --release -p waterwheel-durable --example merchant_notify -- FILE       # keeps the file, for `waterwheel-timers FILE stats`
//! ```
//!
//! Failed attempts come again by a ladder, which is of milliseconds here and would be 15 s, 30 s, 3 min, 10 min … in a service. What has failed to its end is a
//! dead letter; once the server is repaired, the dead letters are made timers again. At the end, each payment was taken by its merchant exactly once, or the exit
//! code is 1.

mod endpoint;
mod notify;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use endpoint::Endpoint;
use waterwheel_durable::{
    Delivery, Drain, Durable, Namespace, NewTimer, Policy, Rate, Redriven, Retry,
};

const PAYMENTS: usize = 500;

/// Longer than any part of this takes, and not for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// As a service would have it, a thousand times faster.
const LADDER: [u64; 6] = [15, 30, 180, 600, 600, 600];

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = std::env::args_os().nth(1);
    let file = file.map_or(folder.path().join("timers.db"), Into::into);
    let timers = Durable::open(&file).await?;

    let (prompt, down) = (Endpoint::start(false).await?, Endpoint::start(true).await?);
    let first = merchant(&timers, "merchant-a", &prompt).await?;
    let second = merchant(&timers, "merchant-b", &down).await?;
    for merchant in [&first, &second] {
        let payments = (0..PAYMENTS).map(|payment| {
            // With the key, the same payment is notified of once, however often this is called.
            NewTimer::after(&merchant.full_name("paid"), Duration::from_millis(10))
                .key(format!("payment-{payment}"))
                .payload(&payment)
        });
        timers.insert_many(payments).await?;
    }

    until("merchant-a has all payments", || {
        first.metrics().settled == PAYMENTS as u64
    })
    .await?;
    until("the ladder of merchant-b has ended", || {
        second.metrics().dead == PAYMENTS as u64
    })
    .await?;
    show(&[(&first, &prompt), (&second, &down)]);

    println!("\nthe server of merchant-b is repaired, and its dead letters are made timers again");
    down.repair();
    redrive(&timers).await?;
    until("merchant-b has all payments", || {
        second.metrics().settled == PAYMENTS as u64
    })
    .await?;
    show(&[(&first, &prompt), (&second, &down)]);

    timers
        .shutdown(Drain::within(Duration::from_secs(5)))
        .await?;
    let is_complete = [&prompt, &down].iter().all(|it| it.seen().1 == PAYMENTS);
    Ok(if is_complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A merchant's namespace: what it bears, how it is tried again, and how long it is known what was delivered.
async fn merchant(
    timers: &Durable,
    name: &str,
    endpoint: &Endpoint,
) -> Result<Namespace, Box<dyn Error>> {
    let policy = Policy::default()
        .ladder(LADDER.map(Duration::from_millis))
        .concurrency(8)
        .rate(Rate::per_second(2_000))
        .retention(1);
    let merchant = timers.create_namespace(name, policy).await?;
    let address = endpoint.address();
    merchant.handle("paid", move |delivery: Delivery| async move {
        let posted = notify::post(address, delivery.id(), delivery.payload());
        posted.await.map_err(Retry::backoff)
    });
    Ok(merchant)
}

async fn redrive(timers: &Durable) -> Result<(), Box<dyn Error>> {
    loop {
        // A letter that is redriven is none any more, so the first page is always the next one.
        let page = timers.dead_letters(None, 100).await?;
        if page.is_empty() {
            return Ok(());
        }
        for letter in page {
            assert_eq!(timers.redrive(letter.id()).await?, Redriven::Done);
        }
    }
}

fn show(merchants: &[(&Namespace, &Endpoint)]) {
    println!("\n             requests  taken  settled  retried  dead  redriven  p99 late");
    for (merchant, endpoint) in merchants {
        let (requests, taken) = endpoint.seen();
        let of = merchant.metrics();
        let late = of.lateness.quantile(0.99).unwrap_or_default();
        println!(
            "{:<12} {requests:>8} {taken:>6} {:>8} {:>8} {:>5} {:>9}   ≤ {late:?}",
            merchant.name(),
            of.settled,
            of.retried,
            of.dead,
            of.redriven,
        );
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) -> Result<(), String> {
    let mut every = tokio::time::interval(Duration::from_millis(10));
    let waits = async {
        while !is_so() {
            every.tick().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waits).await;
    waited.map_err(|_| format!("not within {PATIENCE:?}: {what}"))
}
