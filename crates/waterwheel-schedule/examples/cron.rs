//! Prints when cron expressions run on the days on which daylight saving time begins or ends.
//!
//! ```sh
//! cargo run -p waterwheel-schedule --features cron --example cron
//! cargo run -p waterwheel-schedule --features cron --example cron -- "0 9 * * TUE" Asia/Kolkata 2026-12-01T00:00Z
//! ```

use std::error::Error;

use waterwheel_schedule::calendar::Schedule;
use waterwheel_schedule::calendar::jiff::Timestamp;

/// An expression, a time zone, and the instant to start from, shortly before the clock changes.
const CHANGES: [(&str, &str, &str); 8] = [
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00Z"),
    ("0,30 2 * * *", "Europe/Berlin", "2026-03-28T00:00Z"),
    ("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:15Z"),
    ("30 1 * * *", "America/New_York", "2026-10-31T00:00Z"),
    ("*/30 * * * *", "America/New_York", "2026-11-01T05:15Z"),
    ("@daily", "America/Santiago", "2026-09-05T00:00Z"),
    ("*/15 2 * * *", "Australia/Lord_Howe", "2026-10-03T14:00Z"),
    ("0 9 LW * *", "Africa/Casablanca", "2026-01-30T09:00Z"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    match given.as_slice() {
        [] => {
            for (expression, zone, from) in CHANGES {
                print(expression, zone, from)?;
            }
            Ok(())
        }
        [expression, zone, from] => print(expression, zone, from),
        _ => Err("expected a cron expression, a time zone and an instant, or no arguments".into()),
    }
}

/// Prints the next five instants in local time.
fn print(expression: &str, zone: &str, from: &str) -> Result<(), Box<dyn Error>> {
    let schedule = Schedule::parse(expression, zone)?;
    println!("{schedule} in {zone}");
    for instant in schedule.upcoming(from.parse::<Timestamp>()?).take(5) {
        let wall = instant.to_zoned(schedule.zone().clone());
        println!("    {}", wall.strftime("%a %d %b %Y %H:%M:%S %:z"));
    }
    Ok(())
}
