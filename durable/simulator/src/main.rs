//! `cargo run --release -p waterwheel-simulator -- [--seeds N] [--from SEED]`

use std::process::ExitCode;
use std::time::Instant;

use waterwheel_simulator::run;

fn main() -> ExitCode {
    let (mut seeds, mut from) = (100_000_u64, 0_u64);
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse().ok());
        match (flag.as_str(), value) {
            ("--seeds", Some(value)) => seeds = value,
            ("--from", Some(value)) => from = value,
            _ => {
                eprintln!("usage: waterwheel-simulator [--seeds N] [--from SEED]");
                return ExitCode::from(2);
            }
        }
    }
    let start = Instant::now();
    for seed in from..from.saturating_add(seeds) {
        if let Err(broke) = run(seed, None) {
            eprintln!(
                "{broke}\nrepeat it: cargo run --release -p waterwheel-simulator -- --seeds 1 --from {seed}"
            );
            return ExitCode::FAILURE;
        }
    }
    println!(
        "{seeds} seeds from {from} on: every promise was kept ({:.1?})",
        start.elapsed()
    );
    ExitCode::SUCCESS
}
