//! `cargo run --release -p waterwheel-durable-simulator -- [--seeds N] [--from SEED]`

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use waterwheel_durable_simulator::{Broke, run};

/// How many lives a thread takes at a time.
const AT_A_TIME: u64 = 64;

fn main() -> ExitCode {
    let (mut seeds, mut from) = (100_000_u64, 0_u64);
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse().ok());
        match (flag.as_str(), value) {
            ("--seeds", Some(value)) => seeds = value,
            ("--from", Some(value)) => from = value,
            _ => {
                eprintln!("usage: waterwheel-durable-simulator [--seeds N] [--from SEED]");
                return ExitCode::from(2);
            }
        }
    }
    let start = Instant::now();
    if let Some(broke) = live(from, from.saturating_add(seeds)) {
        eprintln!(
            "{broke}\nrepeat it: cargo run --release -p waterwheel-durable-simulator -- --seeds 1 --from {}",
            broke.seed
        );
        return ExitCode::FAILURE;
    }
    println!(
        "{seeds} seeds from {from} on: every promise was kept ({:.1?})",
        start.elapsed()
    );
    ExitCode::SUCCESS
}

/// Runs these lives, on all processors. The first one in which a promise was not kept.
fn live(from: u64, to: u64) -> Option<Broke> {
    let (next, first) = (AtomicU64::new(from), Mutex::new(None::<Broke>));
    let broke = |broke: Broke| {
        let Ok(mut first) = first.lock() else { return };
        // None after it is of interest.
        next.store(to, Ordering::Relaxed);
        if first.as_ref().is_none_or(|it| broke.seed < it.seed) {
            *first = Some(broke);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(AT_A_TIME, Ordering::Relaxed);
                    if seed >= to {
                        return;
                    }
                    let mut lives = (seed..to.min(seed + AT_A_TIME)).map(|seed| run(seed, None));
                    if let Some(it) = lives.find_map(Result::err) {
                        return broke(it);
                    }
                }
            });
        }
    });
    first.into_inner().ok().flatten()
}
