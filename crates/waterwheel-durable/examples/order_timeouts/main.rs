//! 100 000 orders, each closed half an hour after it was placed unless it is paid: one durable timer per order, cancelled by the payment.
//!
//! ```sh
//! cargo run --release -p waterwheel-durable --example order_timeouts                # half a minute
//! cargo run --release -p waterwheel-durable --example order_timeouts -- --orders 20000
//! ```
//!
//! The program starts a shop in a process of its own. When half of the orders are paid or closed, the shop aborts: no destructor runs, and what it was about to write
//! is lost. It is started again on the same file, and continues. At the end, the first process reads the book, a plain file that the shop writes next to its timers,
//! and checks each order against it. The exit code is 1 if an order was neither paid nor closed, if one was closed early, if one was closed although its payment
//! was taken, or if something was repeated or left open that was not in progress at the abort.

mod book;
mod check;
mod shop;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Parser, value_parser};

use book::Book;
use check::AtTheKill;
use shop::Plan;

/// How many seconds of a real shop pass in one second of this program: half an hour takes ten seconds.
const SCALE: u32 = 180;
const TIME_TO_PAY: Duration = Duration::from_secs(30 * 60 / SCALE as u64);

/// Places orders, each with a durable timer that closes it unless it is paid, and aborts the shop half-way.
#[derive(Parser)]
struct Flags {
    /// The number of orders
    #[arg(long, value_name = "N", default_value = "100000", value_parser = value_parser!(u32).range(10..=1_000_000))]
    orders: u32,
    /// The shop process itself: in this folder,
    #[arg(long, hide = true)]
    shop: Option<PathBuf>,
    /// for its first or second run,
    #[arg(long, hide = true, default_value = "1")]
    run: u8,
    /// since the first customer came, in milliseconds since 1970.
    #[arg(long, hide = true, default_value = "0")]
    start: i64,
}

fn main() -> ExitCode {
    let Flags {
        orders,
        shop,
        run,
        start,
    } = Flags::parse();
    match shop {
        Some(folder) => shop::open(&folder, Plan { run, orders, start }),
        None => supervise(orders),
    }
}

/// Runs the shop, twice, and checks its book.
fn supervise(orders: u32) -> ExitCode {
    let folder = std::env::temp_dir().join(format!("order_timeouts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the timers");
    println!(
        "{orders} orders; the half hour to pay takes {} s here (a second stands for {} minutes)",
        TIME_TO_PAY.as_secs(),
        SCALE / 60
    );
    let start = micros(SystemTime::now()) / 1_000;
    let is_killed = has_aborted(run_shop(&folder, 1, orders, start));
    let killed_at = micros(SystemTime::now());
    let at_the_kill = AtTheKill::of(&Book::read(&folder).expect("the book of the shop"));
    let is_half = at_the_kill.over >= orders as usize / 2;
    println!("the shop has aborted; starting it again on the same file");
    let is_well = run_shop(&folder, 2, orders, start).success();
    let book = Book::read(&folder).expect("the book of the shop");
    let verdict = check::check(&book, orders, killed_at, &at_the_kill);
    print!("{verdict}");
    let _ = std::fs::remove_dir_all(&folder);
    match is_killed && is_half && is_well && verdict.is_well() {
        true => {
            println!("each order was either paid or closed, and none was closed early");
            ExitCode::SUCCESS
        }
        false => {
            println!(
                "WRONG (the first shop aborted: {is_killed}, half-way: {is_half}; the second shop succeeded: {is_well})"
            );
            ExitCode::FAILURE
        }
    }
}

/// Whether a process ended by its own abort. Another failure of the first shop would prove nothing.
fn has_aborted(status: ExitStatus) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;

        const SIGABRT: i32 = 6;
        status.signal() == Some(SIGABRT)
    }
    #[cfg(not(unix))]
    {
        !status.success()
    }
}

fn run_shop(folder: &Path, run: u8, orders: u32, start: i64) -> ExitStatus {
    let program = std::env::current_exe().expect("the path of this program");
    let mut shop = Command::new(program);
    shop.arg("--shop").arg(folder);
    shop.arg(format!("--run={run}"));
    shop.arg(format!("--orders={orders}"));
    shop.arg(format!("--start={start}"));
    shop.status().expect("this program can be started")
}

/// Microseconds since 1970.
fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).expect("a clock after 1970");
    i64::try_from(since.as_micros()).expect("a clock of this era")
}
