//! 100 000 orders, each closed half an hour after it was placed unless it is paid: one durable timer per order, cancelled by the payment.
//!
//! ```sh
//! cargo run --release -p waterwheel-durable --example order_timeouts                # half a minute
//! cargo run --release -p waterwheel-durable --example order_timeouts -- --orders 20000
//! ```
//!
//! The shop is a separate process, which aborts when half of the orders are over, and is started again on the same file. The exit code is 1 if an order is neither
//! paid nor closed, or both, or closed early, or closed twice by one process.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use clap::{Parser, value_parser};
use tokio::task::JoinSet;
use tokio::time::sleep;
use waterwheel_durable::{Cancelled, Delivery, Drain, Durable, Error, Handle, NewTimer};

/// Ten seconds, standing in for half an hour.
const TIME_TO_PAY: Duration = Duration::from_secs(10);
/// The number of orders placed concurrently, and the time in which all of them are placed.
const AT_ONCE: usize = 500;
const PLACING: Duration = Duration::from_secs(14);

/// Places orders, each with a durable timer that closes it unless it is paid, and aborts the shop half-way.
#[derive(Parser)]
struct Flags {
    /// The number of orders
    #[arg(long, value_name = "N", default_value = "100000", value_parser = value_parser!(u32).range(10..=1_000_000))]
    orders: u32,
    /// The shop process itself, in this folder.
    #[arg(long, hide = true)]
    shop: Option<PathBuf>,
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let Flags { orders, shop } = Flags::parse();
    if let Some(folder) = shop {
        return run(&folder, orders).map(|()| ExitCode::SUCCESS);
    }
    let folder = tempfile::tempdir()?;
    let shop = || {
        let mut shop = Command::new(std::env::current_exe()?);
        shop.arg("--shop").arg(folder.path());
        shop.arg(format!("--orders={orders}")).status()
    };
    println!("{orders} orders, each with {TIME_TO_PAY:?} to pay");
    let is_aborted = !shop()?.success();
    let before = book(folder.path()).len();
    println!("the shop has aborted with {before} orders paid or closed; starting it again");
    let is_well = is_aborted && before >= orders as usize / 2 && shop()?.success();
    let lines = book(folder.path());
    let of = |kind: &str| {
        let lines = lines.iter().filter(|(what, _)| what == kind);
        lines.map(|(_, order)| *order).collect::<HashSet<u32>>()
    };
    let (paid, closed, early) = (of("paid"), of("closed"), of("early").len());
    let is_either = paid.is_disjoint(&closed) && paid.len() + closed.len() == orders as usize;
    // An order that was with its handler at the abort may come once more.
    let lives = [&lines[..before], &lines[before..]];
    let is_once = |life: &[_]| life.iter().collect::<HashSet<_>>().len() == life.len();
    let is_once = lives.into_iter().all(is_once);
    let (paid, closed) = (paid.len(), closed.len());
    println!(
        "{paid} paid, {closed} closed, {early} early; is each order in one of both: {is_either}; once in a life: {is_once}"
    );
    let is_right = is_well && is_either && is_once && early == 0;
    Ok(ExitCode::from(u8::from(!is_right)))
}

/// Reads the shop's records: `paid ORDER`, `closed ORDER` or `early ORDER`.
fn book(folder: &Path) -> Vec<(String, u32)> {
    let text = fs::read_to_string(folder.join("book")).unwrap_or_default();
    let line = |(what, order): (&str, &str)| Some((what.to_owned(), order.parse().ok()?));
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(line).collect()
}

struct Shop {
    book: File,
    over: Mutex<HashSet<u32>>,
    /// The number of finished orders at which it aborts.
    abort_at: usize,
}

impl Shop {
    fn note(&self, what: &str, order: u32) {
        let line = format!("{what} {order}\n");
        (&self.book).write_all(line.as_bytes()).expect("a book");
        let mut over = self.over.lock().unwrap();
        if over.insert(order) && over.len() == self.abort_at {
            // No destructor, no flush, no shutdown.
            std::process::abort();
        }
    }

    /// Decides whether a customer pays: one in ten never does, two in a hundred just as the order is closed, the others earlier.
    async fn pay(self: Arc<Shop>, timers: Durable, order: u32, it: Handle) -> Result<(), Error> {
        let due = it.due.time().unwrap_or(SystemTime::UNIX_EPOCH);
        let left = due.duration_since(SystemTime::now()).unwrap_or_default();
        match order % 100 {
            0..10 => return Ok(()),
            10..12 => sleep(left).await,
            part => sleep(left * part / 110).await,
        }
        if timers.cancel(&it).await? == Cancelled::Done {
            self.note("paid", order);
        }
        Ok(())
    }
}

#[tokio::main]
async fn run(folder: &Path, orders: u32) -> Result<(), Box<dyn std::error::Error>> {
    let over: HashSet<u32> = book(folder).into_iter().map(|(_, order)| order).collect();
    let open: Vec<u32> = (0..orders).filter(|order| !over.contains(order)).collect();
    let is_first = over.is_empty();
    let shop = Arc::new(Shop {
        book: File::options()
            .append(true)
            .create(true)
            .open(folder.join("book"))?,
        over: Mutex::new(over),
        abort_at: if is_first {
            orders as usize / 2
        } else {
            usize::MAX
        },
    });
    let timers = Durable::open(folder.join("timers.db")).await?;
    let closes = Arc::clone(&shop);
    let close = move |delivery: Delivery| {
        let is_early = SystemTime::now() < delivery.due();
        let what = if is_early { "early" } else { "closed" };
        // Written before the timer is settled, so an order is closed at least once.
        let closed = delivery.json().map(|order| closes.note(what, order));
        async { Ok(closed?) }
    };
    if is_first {
        timers.handle("close", close.clone());
    }
    let mut customers = JoinSet::new();
    for some in open.chunks(AT_ONCE) {
        // After the abort, the key of an order that was already placed finds its timer.
        let new = |order: &u32| {
            let timer = NewTimer::after("close", TIME_TO_PAY).payload(order);
            timer.key(format!("order-{order}"))
        };
        let placed = timers.insert_many(some.iter().map(new)).await?;
        for (order, placed) in some.iter().zip(placed) {
            let (shop, timers) = (Arc::clone(&shop), timers.clone());
            customers.spawn(shop.pay(timers, *order, placed.into_handle()));
        }
        if is_first {
            sleep(PLACING * AT_ONCE as u32 / orders).await;
        }
    }
    if !is_first {
        // Overdue orders are closed only after they were found by key: from then on, the key is free again.
        timers.handle("close", close);
    }
    while let Some(customer) = customers.join_next().await {
        customer??;
    }
    let end = SystemTime::now() + 3 * TIME_TO_PAY;
    while shop.over.lock().unwrap().len() < orders as usize && SystemTime::now() < end {
        sleep(Duration::from_millis(20)).await;
    }
    timers.shutdown(Drain::within(TIME_TO_PAY)).await?;
    Ok(())
}
