//! Sends webhooks about payments to two merchants, each in a namespace of its own. The server of one fails every third request and loses some of its answers; the
//! server of the other is down until it is repaired.
//!
//! ```sh
//! cargo run --release -p waterwheel-durable --example merchant_notify               # some seconds
//! cargo run --release -p waterwheel-durable --example merchant_notify -- FILE       # keeps the file, for `waterwheel FILE stats`, and for another run
//! ```
//!
//! Failed attempts are retried on a schedule of milliseconds, which would be 15 s, 30 s, 3 min, 10 min … in a service. A timer whose retries are used up becomes a
//! dead letter, and once the server is repaired, the dead letters are redriven. Each payment is inserted twice, and its key makes that one timer. A notification
//! whose answer was lost is sent again, and the timer's id, sent as the idempotency key, tells the merchant that it is the same one. The last lines say what was
//! shown. The exit code is 1 unless each payment was booked by its merchant exactly once.

mod endpoint;
mod notify;

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use endpoint::Endpoint;
use waterwheel_durable::{
    Delivery, Drain, Durable, Namespace, NamespaceMetrics, NewTimer, Policy, Rate, Redriven, Retry,
};

const PAYMENTS: usize = 500;

/// The time limit of each part, which takes much less.
const PATIENCE: Duration = Duration::from_secs(60);

/// The retry schedule of a service, in milliseconds instead of seconds.
const RETRY_DELAYS: [u64; 6] = [15, 30, 180, 600, 600, 600];

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = std::env::args_os().nth(1);
    let file = file.map_or(folder.path().join("timers.db"), Into::into);
    let timers = Durable::open(&file).await?;

    // A kept file has the keys of earlier runs, which had other payments.
    let run = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let run = u64::try_from(run.as_millis())?;
    let prompt = Endpoint::start(run, false).await?;
    let down = Endpoint::start(run, true).await?;
    let first = merchant(&timers, "merchant-a", &prompt).await?;
    let second = merchant(&timers, "merchant-b", &down).await?;
    for merchant in [&first, &second] {
        // The second insert is that of a caller who got no answer: the key says that it is the same payment.
        for _ in 0..2 {
            let payments = (0..PAYMENTS).map(|payment| {
                NewTimer::after("paid", Duration::from_millis(10))
                    .key(format!("payment-{run}-{payment}"))
                    .payload(&(run, payment))
            });
            merchant.insert_many(payments).await?;
        }
    }

    // All attempts of some timers of merchant-a may have met a failing request.
    until("the timers of merchant-a are settled or dead", || {
        let of = first.metrics();
        of.settled + of.dead >= PAYMENTS as u64
    })
    .await?;
    until("the retries of merchant-b are used up", || {
        second.metrics().dead >= PAYMENTS as u64
    })
    .await?;
    show(&[(&first, &prompt), (&second, &down)]);

    println!("\nthe server of merchant-b is repaired, and all dead letters are redriven");
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
    let redriven = tokio::time::timeout(PATIENCE, redriven).await;
    redriven.map_err(|_| timed_out("each payment is booked"))??;
    show(&[(&first, &prompt), (&second, &down)]);

    let metrics = [first.metrics(), second.metrics()];
    timers
        .shutdown(Drain::within(Duration::from_secs(5)))
        .await?;
    Ok(match conclude(&metrics, &[&prompt, &down]) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Says what was shown, counted from what happened. Returns whether each payment was booked exactly once.
fn conclude(metrics: &[NamespaceMetrics], endpoints: &[&Endpoint]) -> bool {
    let sum = |of: fn(&NamespaceMetrics) -> u64| metrics.iter().map(of).sum::<u64>();
    let (duplicates, retried, redriven) = (
        sum(|it| it.duplicates),
        sum(|it| it.retried),
        sum(|it| it.redriven),
    );
    let repeated: u64 = endpoints.iter().map(|it| it.repeated()).sum();
    let once: usize = endpoints.iter().map(|it| it.booked_once(PAYMENTS)).sum();
    let payments = endpoints.len() * PAYMENTS;
    println!(
        "\n{duplicates} duplicate inserts created no timer, {retried} failed attempts were retried,"
    );
    println!("{redriven} dead letters were redriven, {repeated} repeated webhooks booked nothing:");
    match once == payments {
        true => println!("each of {payments} payments was booked exactly once"),
        false => println!("WRONG: only {once} of {payments} payments were booked exactly once"),
    }
    once == payments
}

/// A merchant's namespace: its limits, its retry schedule, and how long its keys stay taken after a delivery.
async fn merchant(
    timers: &Durable,
    name: &str,
    endpoint: &Endpoint,
) -> Result<Namespace, Box<dyn Error>> {
    let policy = Policy::default()
        .retry_delays(RETRY_DELAYS.map(Duration::from_millis))
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
        // A redriven dead letter is no longer listed, so the first page is always the next one.
        let page = timers.dead_letters(None, 100).await?;
        if page.is_empty() {
            return Ok(());
        }
        for dead_letter in page {
            assert_eq!(timers.redrive(dead_letter.id()).await?, Redriven::Done);
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
    waited.map_err(|_| timed_out(what))
}

fn timed_out(what: &str) -> String {
    format!("timed out after {PATIENCE:?}, waiting until {what}")
}
