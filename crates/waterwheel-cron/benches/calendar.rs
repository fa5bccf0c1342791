//! The time of a search: nanoseconds of one thread for each `next_after`, for each search of croner's own, and for each `parse`.
//!
//! ```sh
//! cargo bench -p waterwheel-schedule --features cron --bench calendar
//! ```
//!
//! Each schedule is searched from instants that are a prime number of seconds apart, over eight years, so that they include both sides of
//! many clock changes. Prints the median of the rounds, with the least and the greatest. The target is 20 µs. croner's search is for
//! comparison: it finds other instants for lists at a clock change.

use std::hint::black_box;
use std::str::FromStr;
use std::time::Instant;

use croner::Cron;
use waterwheel_cron::Schedule;
use waterwheel_cron::jiff::tz::TimeZoneDatabase;
use waterwheel_cron::jiff::{SignedDuration, Timestamp};

const ROUNDS: usize = 11;
const SEARCHES: u32 = 20_000;
/// Fewer for croner, whose searches take some milliseconds each if they find nothing for long.
const CRONERS_SEARCHES: u32 = 500;
/// The step in seconds, a prime number.
const STEP: i64 = 12_611;

const SCHEDULES: [(&str, &str); 12] = [
    ("30 2 * * *", "UTC"),
    ("30 2 * * *", "Europe/Berlin"),
    ("0,30 2 * * *", "Europe/Berlin"),
    ("0-59 0-23 * * *", "Europe/Berlin"),
    ("*/15 * * * *", "Europe/Berlin"),
    ("* * * * * *", "America/New_York"),
    ("0 9 * * TUE", "America/New_York"),
    ("0 9 12 * *", "Australia/Lord_Howe"),
    ("0 18 LW * *", "Africa/Casablanca"),
    ("@yearly", "America/Santiago"),
    ("0 0 29 2 +MON", "America/Sao_Paulo"),
    (NEVER, "America/New_York"),
];

/// All of its times fall into gaps.
const NEVER: &str = "*/30 2 8-14 3 +SUN";

fn main() {
    // `cargo test --benches` does not pass this.
    let rounds = if std::env::args().any(|it| it == "--bench") {
        ROUNDS
    } else {
        1
    };
    let zones = TimeZoneDatabase::bundled();
    println!("median [least, greatest] of {rounds} rounds, in ns");
    let [expression, zone, ours] = ["expression", "zone", "next_after"];
    let [croners, parse] = ["croner", "parse"];
    println!("{expression:20} {zone:20} {ours:>22} {croners:>22} {parse:>8}");
    for (expression, zone) in SCHEDULES {
        let zone_data = match zones.get(zone) {
            Ok(data) => data,
            Err(error) => panic!("the benchmark needs the feature `bundled-zones`: {error}"),
        };
        let schedule = Schedule::parse_in(expression, zone_data.clone()).expect("it is valid");
        let cron = Cron::from_str(expression).expect("it is valid");
        let mut ours = Vec::new();
        let mut croners = Vec::new();
        for _ in 0..rounds {
            ours.push(time_of(SEARCHES, |after| {
                black_box(schedule.next_after(after));
            }));
            // Up to the year 5000.
            if expression != NEVER {
                croners.push(time_of(CRONERS_SEARCHES, |after| {
                    let after = after.to_zoned(zone_data.clone());
                    black_box(cron.find_next_occurrence(&after, false).is_ok());
                }));
            }
        }
        let parses = u32::try_from(rounds * 20).expect("few rounds");
        let start = Instant::now();
        for _ in 0..parses {
            black_box(Schedule::parse_in(black_box(expression), zone_data.clone()).is_ok());
        }
        let parse = start.elapsed().as_nanos() / u128::from(parses);
        let (ours, croners) = (summary(ours), summary(croners));
        println!("{expression:20} {zone:20} {ours:>22} {croners:>22} {parse:>8}");
    }
}

/// The nanoseconds per search.
fn time_of(searches: u32, mut search: impl FnMut(Timestamp)) -> u64 {
    let mut after = Timestamp::constant(1_735_689_600, 0);
    let start = Instant::now();
    for _ in 0..searches {
        search(black_box(after));
        after += SignedDuration::from_secs(STEP);
    }
    start.elapsed().as_nanos() as u64 / u64::from(searches)
}

fn summary(mut rounds: Vec<u64>) -> String {
    rounds.sort_unstable();
    match *rounds.as_slice() {
        [] => "-".to_owned(),
        [least, ..] => format!(
            "{} [{least}, {}]",
            rounds[rounds.len() / 2],
            rounds[rounds.len() - 1]
        ),
    }
}
