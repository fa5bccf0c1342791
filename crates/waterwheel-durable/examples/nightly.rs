//! Recurring work: a report every night at three in Berlin, and a heartbeat every second that shows what happens to occurrences that come due while the service is
//! off.
//!
//! ```sh
//! cargo run --release -p waterwheel-durable --example nightly          # twelve seconds
//! cargo run --release -p waterwheel-durable --example nightly -- FILE  # keeps the file; run it again and the nightly report goes on
//! ```
//!
//! The service runs for some seconds, is off for some, and runs again. An occurrence that is late by a minute or less is not a misfire, so each heartbeat missed
//! while the service was off is delivered at the start. If they were later than that, `Misfire::Once` would deliver only the last one. The exit code is 1 unless
//! each occurrence came exactly once, none is missing and none came early.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use waterwheel_durable::{Calendar, Drain, Durable, Misfire};

const RUNS: Duration = Duration::from_millis(3_500);
const OFF: Duration = Duration::from_secs(5);

/// The lateness of the heartbeats for each second.
type Heartbeats = Arc<Mutex<BTreeMap<u64, Vec<Duration>>>>;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = std::env::args_os().nth(1);
    let file = file.map_or(folder.path().join("timers.db"), Into::into);
    let heartbeats = Heartbeats::default();

    println!("the service starts");
    run(&file, &heartbeats).await?;
    println!("the service is off for {OFF:?}");
    tokio::time::sleep(OFF).await;
    println!("the service starts again");
    run(&file, &heartbeats).await?;

    let heartbeats = heartbeats.lock().unwrap();
    let is_once = heartbeats.values().all(|late| late.len() == 1);
    let seconds = heartbeats.keys().next_back().zip(heartbeats.keys().next());
    let is_whole = seconds.is_some_and(|(last, first)| last - first + 1 == heartbeats.len() as u64);
    let missed = heartbeats
        .values()
        .flatten()
        .filter(|late| **late > Duration::from_secs(1));
    println!(
        "{} heartbeats, {} of them late because the service was off",
        heartbeats.len(),
        missed.count()
    );
    Ok(if is_once && is_whole {
        println!("each came exactly once, and none is missing");
        ExitCode::SUCCESS
    } else {
        println!("WRONG (each came exactly once: {is_once}; none is missing: {is_whole})");
        ExitCode::FAILURE
    })
}

async fn run(file: &Path, heartbeats: &Heartbeats) -> Result<(), Box<dyn Error>> {
    let timers = Durable::open(file).await?;
    timers.handle("nightly", |delivery| async move {
        println!("the report of the night of {:?}", delivery.occurrence());
        Ok(())
    });
    let heard = Arc::clone(heartbeats);
    timers.handle("heartbeat", move |delivery| {
        let heard = Arc::clone(&heard);
        async move {
            let occurrence = delivery.occurrence().unwrap_or(UNIX_EPOCH);
            // This fails if it is early: the retry would then count as a second heartbeat.
            let late = SystemTime::now().duration_since(occurrence)?;
            let second = occurrence.duration_since(UNIX_EPOCH)?.as_secs();
            println!("heartbeat {second}, {} ms late", late.as_millis());
            heard.lock().unwrap().entry(second).or_default().push(late);
            Ok(())
        }
    });

    // Declared at each start. An existing calendar continues from where it was.
    let night = Calendar::cron("0 3 * * *").zone("Europe/Berlin");
    timers.calendar("nightly", night).await?;
    let second = Calendar::cron("* * * * * *").misfire(Misfire::Once);
    timers.calendar("heartbeat", second).await?;
    for calendar in timers.calendars() {
        let next = calendar
            .next
            .map(|next| next.duration_since(SystemTime::now()));
        println!(
            "{} ({} in {}): next in {next:?}",
            calendar.name, calendar.expression, calendar.zone
        );
    }

    tokio::time::sleep(RUNS).await;
    timers
        .shutdown(Drain::within(Duration::from_secs(5)))
        .await?;
    Ok(())
}
