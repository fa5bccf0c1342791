//! Sends webhooks about payments to two merchants, each in its own namespace. The server of one fails every third request and loses some of its answers; the
//! server of the other is down until it is repaired.
//!
//! ```sh
//! cargo run --release -p waterwheel-durable --example merchant_notify               # a few seconds
//! cargo run --release -p waterwheel-durable --example merchant_notify -- FILE       # keeps the file, for `waterwheel FILE stats`, and for another run
//! ```
//!
//! A timer whose retries are used up becomes a dead letter, and once the server is repaired, the dead letters are redriven. Each payment is inserted twice, and its
//! key makes that one timer. A notification whose answer was lost is sent again, and the timer's id, sent as the idempotency key, tells the merchant that it is the
//! same one. The exit code is 1 unless each payment was booked by its merchant exactly once.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use waterwheel_durable::{
    Delivery, Drain, Durable, Id, Namespace, NamespaceMetrics, NewTimer, Policy, Rate, Retry,
};

const PAYMENTS: usize = 500;
/// The time limit of each part.
const PATIENCE: Duration = Duration::from_secs(60);
/// The retry schedule of a service, in milliseconds instead of seconds.
const RETRY_DELAYS: [u64; 6] = [15, 30, 180, 600, 600, 600];

/// A payment, and the run of this program that it belongs to: a kept file may contain payments of an earlier run.
type Payment = (u64, usize);

/// A merchant's server, as far as this example needs one.
#[derive(Default)]
struct Server {
    is_down: AtomicBool,
    requests: AtomicU64,
    /// The idempotency keys of all requests that were booked, and how often each payment was booked.
    book: Mutex<(HashSet<Id>, HashMap<Payment, u32>)>,
}

impl Server {
    /// Stands for an HTTP request. Every third request fails, and every one while the server is down. Some are booked, but their answers are lost.
    async fn post(&self, key: Id, payment: Payment) -> io::Result<()> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        if self.is_down.load(Ordering::SeqCst) || number.is_multiple_of(3) {
            return Err(io::Error::other("503 Service Unavailable"));
        }
        let (keys, booked) = &mut *self.book.lock().unwrap();
        // A request with a known key was booked before.
        if keys.insert(key) {
            *booked.entry(payment).or_default() += 1;
        }
        match number % 10 {
            7 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// How many payments of this run were booked exactly once.
    fn booked_once(&self, run: u64) -> usize {
        let (_, booked) = &*self.book.lock().unwrap();
        booked
            .iter()
            .filter(|((of, _), count)| *of == run && **count == 1)
            .count()
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = std::env::args_os().nth(1);
    let timers = Durable::open(&file.map_or(folder.path().join("timers.db"), Into::into)).await?;
    let run = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    let (prompt, down) = (Arc::new(Server::default()), Arc::new(Server::default()));
    down.is_down.store(true, Ordering::SeqCst);
    let first = merchant(&timers, "merchant-a", &prompt).await?;
    let second = merchant(&timers, "merchant-b", &down).await?;
    for merchant in [&first, &second] {
        // The second insert is that of a caller who got no answer. The key marks it as the same payment.
        for _ in 0..2 {
            let payments = (0..PAYMENTS).map(|payment| {
                NewTimer::after("paid", Duration::from_millis(10))
                    .key(format!("payment-{run}-{payment}"))
                    .payload(&(run, payment))
            });
            merchant.insert_many(payments).await?;
        }
    }
    let merchants = [&first, &second];
    // All attempts of some timers of merchant-a may have met a failing request.
    until(&timers, &merchants, |of| of.settled + of.dead).await?;
    println!("\nthe server of merchant-b is repaired, and all dead letters are redriven");
    down.is_down.store(false, Ordering::SeqCst);
    until(&timers, &merchants, |of| of.settled).await?;
    timers
        .shutdown(Drain::within(Duration::from_secs(5)))
        .await?;
    let once = prompt.booked_once(run) + down.booked_once(run);
    println!(
        "\n{once} of {} payments were booked exactly once",
        2 * PAYMENTS
    );
    Ok(ExitCode::from(u8::from(once != 2 * PAYMENTS)))
}

/// Redrives dead letters, once there are enough to cover every failing payment, until `count` covers all payments of each merchant.
async fn until(
    timers: &Durable,
    merchants: &[&Namespace],
    count: fn(&NamespaceMetrics) -> u64,
) -> Result<(), Box<dyn Error>> {
    let end = SystemTime::now() + PATIENCE;
    while merchants
        .iter()
        .any(|it| count(&it.metrics()) < PAYMENTS as u64)
    {
        if merchants
            .iter()
            .all(|it| it.metrics().settled + it.metrics().dead >= PAYMENTS as u64)
        {
            for dead_letter in timers.dead_letters(None, 1_000).await? {
                timers.redrive(dead_letter.id()).await?;
            }
        }
        if SystemTime::now() > end {
            return Err(format!("timed out after {PATIENCE:?}").into());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for merchant in merchants {
        let (name, of) = (merchant.name(), merchant.metrics());
        let late = of.lateness.quantile(0.99).unwrap_or_default();
        print!("{name}: {} settled, {} retried, ", of.settled, of.retried);
        print!("{} dead, {} redriven, ", of.dead, of.redriven);
        println!("{} duplicates; p99 late ≤ {late:?}", of.duplicates);
    }
    Ok(())
}

/// A merchant's namespace: its limits, its retry schedule, and how long its keys stay taken after a delivery.
async fn merchant(
    timers: &Durable,
    name: &str,
    server: &Arc<Server>,
) -> Result<Namespace, Box<dyn Error>> {
    let policy = Policy::default()
        .retry_delays(RETRY_DELAYS.map(Duration::from_millis))
        .concurrency(8)
        .rate(Rate::per_second(2_000))
        .retention(1);
    let merchant = timers.create_namespace(name, policy).await?;
    let server = Arc::clone(server);
    merchant.handle("paid", move |delivery: Delivery| {
        let server = Arc::clone(&server);
        async move {
            // The timer's id is the same in every attempt.
            let posted = server.post(delivery.id(), delivery.json()?).await;
            posted.map_err(Retry::backoff)
        }
    });
    Ok(merchant)
}
