//! Two processes share durable timers, and the one that delivers them is killed.
//!
//! ```sh
//! cargo run --release -p waterwheel-durable-postgres --example takeover            # starts a PostgreSQL server of its own
//! cargo run --release -p waterwheel-durable-postgres --example takeover -- URL     # uses an empty database
//! ```
//!
//! Ten timers a second are due. The first process delivers them, and the second one waits. After three seconds the first one is killed. The second one takes over
//! once it has not seen a heartbeat for one TTL, a second here, and delivers what is overdue by then. The exit code is 1 unless each timer was delivered.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use waterwheel_durable::{Drain, Durable, NewTimer};
use waterwheel_durable_postgres::Postgres;
use waterwheel_postgres_server::Server;

const TIMERS: usize = 80;
const EVERY: Duration = Duration::from_millis(100);
const TTL: Duration = Duration::from_secs(1);
/// The due time of the first timer, from the moment at which it is inserted.
const LEAD: Duration = Duration::from_secs(1);
/// When the first process is killed, from the first due time.
const KILLED_AFTER: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(60);

type Failure = Box<dyn Error + Send + Sync>;

/// The process, the timer and the time of a delivery.
type Delivered = (&'static str, usize, SystemTime);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments[..] {
        [url, role] => deliver(url, role == "first"),
        [url] => watch(url),
        _ => own_server(),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn own_server() -> Result<ExitCode, Failure> {
    let server = Server::start(&[])?;
    watch(&server.database())
}

/// One of the two processes: delivers timers until its standard input ends, and prints each delivery.
#[tokio::main]
async fn deliver(url: &str, inserts: bool) -> Result<ExitCode, Failure> {
    let timers = Durable::builder().store(Postgres::new(url)).open().await?;
    timers.handle("tick", |delivery| async move {
        println!("{}", String::from_utf8_lossy(delivery.payload()));
        Ok(())
    });
    if inserts {
        let first = SystemTime::now() + LEAD;
        let new = (0..TIMERS).map(|number| {
            let due = first + EVERY * u32::try_from(number).unwrap_or(u32::MAX);
            NewTimer::at("tick", due).bytes(number.to_string().into_bytes())
        });
        timers.insert_many(new).await?;
        println!("inserted");
    }
    tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0])).await??;
    timers.shutdown(Drain::within(PATIENCE)).await?;
    Ok(ExitCode::SUCCESS)
}

fn start(
    url: &str,
    name: &'static str,
    sender: &Sender<Delivered>,
    inserted: Sender<()>,
) -> Result<Child, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([url, name]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let lines = BufReader::new(child.stdout.take().ok_or("no output")?);
    let sender = sender.clone();
    thread::spawn(move || {
        for line in lines.lines().map_while(Result::ok) {
            match line.parse() {
                Ok(number) => drop(sender.send((name, number, SystemTime::now()))),
                Err(_) => drop(inserted.send(())),
            }
        }
    });
    Ok(child)
}

fn watch(url: &str) -> Result<ExitCode, Failure> {
    Postgres::new(url).ttl(TTL).migrate()?;
    let (sender, delivered) = mpsc::channel();
    let (inserted, has_inserted) = mpsc::channel();
    let mut first = start(url, "first", &sender, inserted.clone())?;
    has_inserted.recv_timeout(PATIENCE)?;
    let begin = SystemTime::now() + LEAD;
    let mut second = start(url, "second", &sender, inserted)?;
    thread::sleep(LEAD + KILLED_AFTER);
    first.kill()?;
    first.wait()?;
    let deliveries = collect(&delivered);
    drop(second.stdin.take());
    second.wait()?;
    let deliveries = deliveries?;
    draw(&deliveries, begin);
    Ok(ExitCode::SUCCESS)
}

/// Waits until each timer was delivered.
fn collect(delivered: &Receiver<Delivered>) -> Result<Vec<Delivered>, Failure> {
    let (mut all, mut times) = (Vec::new(), BTreeMap::new());
    while times.len() < TIMERS {
        let next = delivered.recv_timeout(PATIENCE);
        let next = next.map_err(|_| format!("{} of {TIMERS} were delivered", times.len()))?;
        *times.entry(next.1).or_insert(0) += 1;
        all.push(next);
    }
    Ok(all)
}

/// Draws a line for each process, with the number of deliveries in each tenth of a second.
fn draw(deliveries: &[Delivered], begin: SystemTime) {
    let micros = |at: SystemTime| {
        at.duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_micros()
    };
    let slot = |at: SystemTime| {
        let after = micros(at).saturating_sub(micros(begin));
        usize::try_from(after / EVERY.as_micros()).unwrap_or(usize::MAX)
    };
    let last = deliveries.iter().map(|it| slot(it.2)).max().unwrap_or(0);
    let seconds = (0..=last / 10).map(|second| format!("{second:<10}"));
    println!("second   {}", seconds.collect::<String>());
    for name in ["first", "second"] {
        let mut counts = vec![0; last + 1];
        for (_, _, at) in deliveries.iter().filter(|it| it.0 == name) {
            counts[slot(*at)] += 1;
        }
        let signs = counts.iter().map(|count| match count {
            0 => '·',
            1 => '▪',
            _ => '█',
        });
        println!("{name:8} {}", signs.collect::<String>());
    }
    let mut times: Vec<_> = deliveries.iter().map(|it| micros(it.2)).collect();
    times.sort_unstable();
    let pause = times.windows(2).map(|pair| pair[1] - pair[0]).max();
    let twice = deliveries.len() - TIMERS;
    println!(
        "{TIMERS} timers were delivered, {twice} of them twice; the longest pause took {:.1} s, with a TTL of {:.1} s",
        pause.unwrap_or(0) as f64 / 1e6,
        TTL.as_secs_f64()
    );
}
