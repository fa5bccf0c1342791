//! `cargo run --release -p waterwheel-durable-simulator -- [--cluster] [--seeds N] [--from SEED] [--steps N,N+]`

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use waterwheel_durable_simulator::{Broke, Broken, Fault, Life, Step, cluster, run, shrink};

/// The number of lives that a thread takes at a time.
const AT_A_TIME: u64 = 64;

const USAGE: &str =
    "usage: waterwheel-durable-simulator [--cluster] [--seeds N] [--from SEED] [--steps N,N+]";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    match arguments.next_if_eq("--cluster") {
        Some(_) => lives::<cluster::Fault>("--cluster ", arguments),
        None => lives::<Broken>("", arguments),
    }
}

/// Runs lives of one kind.
fn lives<F: Fault>(kind: &str, mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let (mut seeds, mut from) = (100_000_u64, 0_u64);
    let mut steps = None;
    while let Some(flag) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        let is_known = match flag.as_str() {
            "--seeds" => value.parse().map(|it| seeds = it).is_ok(),
            "--from" => value.parse().map(|it| from = it).is_ok(),
            "--steps" => listed(&value).map(|it| steps = Some(it)).is_some(),
            _ => false,
        };
        if !is_known {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    if let Some(steps) = steps {
        return replay::<F>(from, &steps);
    }
    let start = Instant::now();
    if let Some(broke) = live::<F>(from, from.saturating_add(seeds)) {
        report::<F>(kind, &broke);
        return ExitCode::FAILURE;
    }
    println!(
        "{seeds} seeds from {from} on: every promise was kept ({:.1?})",
        start.elapsed()
    );
    ExitCode::SUCCESS
}

/// Parses a list of steps, in order. The list is empty for a life that breaks a promise as it begins or ends.
fn listed(list: &str) -> Option<Vec<Step>> {
    let steps = list.split(',').filter(|it| !it.is_empty());
    let steps: Result<Vec<Step>, _> = steps.map(str::parse).collect();
    steps.ok().filter(|it| it.is_sorted_by_key(|it| it.number))
}

/// Runs some of the steps of a life.
fn replay<F: Fault>(seed: u64, steps: &[Step]) -> ExitCode {
    let (life, _) = Life::record(seed, None::<F>);
    if let Some(step) = steps.iter().find(|it| it.number >= life.len()) {
        eprintln!("seed {seed} has {} steps, and no step {step}", life.len());
        return ExitCode::from(2);
    }
    match life.replay(steps, Some(&mut |step, told| println!("{step}: {told}"))) {
        Ok(()) => {
            println!("every promise was kept");
            ExitCode::SUCCESS
        }
        Err(broke) => {
            eprintln!("{broke}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the seed that repeats the broken promise, and the few steps that are needed.
fn report<F: Fault>(kind: &str, broke: &Broke) {
    let repeat = format!("cargo run --release -p waterwheel-durable-simulator -- {kind}");
    let seed = broke.seed;
    eprintln!("{broke}\nrepeat it: {repeat}--seeds 1 --from {seed}");
    let Some(shrunk) = shrink(seed, None::<F>) else {
        return eprintln!("it is not broken when the seed is repeated");
    };
    let steps: Vec<String> = shrunk.steps.iter().map(Step::to_string).collect();
    eprintln!(
        "\nshrunk to {} steps, after those with a + the store rests: {}",
        steps.len(),
        shrunk.broke.what
    );
    for told in &shrunk.told {
        eprintln!("  {told}");
    }
    let steps = steps.join(",");
    eprintln!("repeat them: {repeat}--from {seed} --steps {steps}");
}

/// Runs these lives, on all processors. Returns the first one in which a promise was broken.
fn live<F: Fault>(from: u64, to: u64) -> Option<Broke> {
    let (next, first) = (AtomicU64::new(from), Mutex::new(None::<Broke>));
    let broke = |broke: Broke| {
        let Ok(mut first) = first.lock() else { return };
        // Later lives are of no interest.
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
                    let mut lives =
                        (seed..to.min(seed + AT_A_TIME)).map(|seed| run(seed, None::<F>));
                    if let Some(it) = lives.find_map(Result::err) {
                        return broke(it);
                    }
                }
            });
        }
    });
    first.into_inner().ok().flatten()
}
