//! Notifies two merchants of payments, each in a namespace of its own: one whose server fails each third request and loses some of its answers, and one whose
//! server is down until it is repaired.
//!
//! ```sh
//! cargo run --release -p waterwheel-durable --example merchant_notify               # some seconds
//! cargo run --release -p waterwheel-durable --example merchant_notify -- FILE       # keeps the file, for `waterwheel-timers FILE stats`, and for another run
//! ```
//!
//! Failed attempts come again by a ladder, which is of milliseconds here and would be 15 s, 30 s, 3 min, 10 min … in a service. What has failed to its end is a
//! dead letter; once the server is repaired, the dead letters are made timers again. Each payment is inserted twice, and the key makes it one timer; a notification
//! whose answer was lost is sent again, and the timer's id says to the merchant that it is the same one. At the end, each payment was booked by its merchant exactly
//! once, or the exit code is 1.

mod endpoint;
mod notify;

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

    // A file that is kept has the keys of earlier runs, which had other payments.
    let run = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let run = u64::try_from(run.as_millis())?;
    let prompt = Endpoint::start(run, false).await?;
    let down = Endpoint::start(run, true).await?;
    let first = merchant(&timers, "merchant-a", &prompt).await?;
    let second = merchant(&timers, "merchant-b", &down).await?;
    for merchant in [&first, &second] {
        // The second time is that of a caller who has had no answer: the key says that it is the same payment.
        for _ in 0..2 {
            let payments = (0..PAYMENTS).map(|payment| {
                NewTimer::after("paid", Duration::from_millis(10))
                    .key(format!("payment-{run}-{payment}"))
                    .payload(&(run, payment))
            });
            merchant.insert_many(payments).await?;
        }
    }

    // Some of merchant-a's may have met the failing server at all of their attempts.
    until("the timers of merchant-a are settled or dead", || {
        let of = first.metrics();
        of.settled + of.dead >= PAYMENTS as u64
    })
    .await?;
    until("the ladder of merchant-b has ended", || {
        second.metrics().dead >= PAYMENTS as u64
    })
    .await?;
    show(&[(&first, &prompt), (&second, &down)]);

    println!("\nthe server of merchant-b is repaired, and its dead letters are made timers again");
    down.repair();
    let redriven = async {
        let is_settled = |it: &Namespace| it.metrics().settled >= PAYMENTS as u64;
        while !([&first, &second].iter().all(|it| is_settled(it))
            && [&prompt, &down].iter().all(|it| it.has_all(PAYMENTS)))
        {
            redrive(&timers).await?;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok::<(), waterwheel_durable::Error>(())
    };
    tokio::time::timeout(PATIENCE, redriven).await??;
    show(&[(&first, &prompt), (&second, &down)]);

    timers
        .shutdown(Drain::within(Duration::from_secs(5)))
        .await?;
    let is_complete = [&prompt, &down].iter().all(|it| it.has_each_once(PAYMENTS));
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

async fn redrive(timers: &Durable) -> Result<(), waterwheel_durable::Error> {
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
    println!("\n             requests booked  settled  retried  dead  redriven  p99 late");
    for (merchant, endpoint) in merchants {
        let (requests, booked) = endpoint.seen();
        let of = merchant.metrics();
        let late = of.lateness.quantile(0.99).unwrap_or_default();
        println!(
            "{:<12} {requests:>8} {booked:>6} {:>8} {:>8} {:>5} {:>9}   ≤ {late:?}",
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
