//! Sleeps on a clock that stands still, as in a simulator: the program that the suite's `simulate` workload starts.
//!
//! ```text
//! simulate [--quick] --sample TASKS CONTESTANT
//! ```
//!
//! This is a separate program, since its build has tokio's feature `test-util` and the suite's does not. It prints the
//! sample like the suite's own child processes.

#![forbid(unsafe_code)]

use std::future::poll_fn;
use std::pin::pin;
use std::process::ExitCode;
use std::task::Poll;
use std::time::{Duration, Instant};

use clap::Parser;
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use waterwheel::{ManualClock, Timer};
use waterwheel_bench_kit::threads;

const MILLISECOND: Duration = Duration::from_millis(1);
/// The contestant with its own clock, which the program moves.
const BY_HAND: &str = "own, manual clock";
/// The number of sleeps between two readings of the clock.
const BATCH: u32 = 10_000;

#[derive(Parser)]
struct Flags {
    /// Measures for a twentieth of a second instead of a second
    #[arg(long)]
    quick: bool,
    /// How many tasks, and the contestant
    #[arg(long, num_args = 2, required = true)]
    sample: Vec<String>,
}

fn main() -> ExitCode {
    match sample(&Flags::parse()) {
        Ok(nanos) => {
            println!(r#"{{"values":[{nanos}],"early":0,"lost":0,"retaken":0}}"#);
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("simulate: {message}");
            ExitCode::from(2)
        }
    }
}

/// Returns the CPU nanoseconds per sleep.
fn sample(flags: &Flags) -> Result<f64, String> {
    let [tasks, name] = &flags.sample[..] else {
        return Err("not `simulate [--quick] --sample TASKS CONTESTANT`".to_owned());
    };
    let tasks = tasks
        .parse()
        .map_err(|error| format!("{tasks:?}, for TASKS: {error}"))?;
    let time = Duration::from_millis(if flags.quick { 50 } else { 1000 });
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(name != BY_HAND)
        .build()
        .map_err(|error| error.to_string())?;
    let nanos = match name.as_str() {
        "tokio" => measure(&runtime, None, tasks, time, tokio::time::sleep),
        "current" => measure(&runtime, None, tasks, time, waterwheel::sleep),
        "own" => {
            let timer = Timer::builder().start_on(runtime.handle());
            let timer = timer.map_err(|error| error.to_string())?;
            let sleep = move |duration| timer.sleep(duration);
            measure(&runtime, None, tasks, time, sleep)
        }
        BY_HAND => {
            let clock = ManualClock::new();
            let timer = Timer::builder().clock(clock.clone());
            let timer = timer.start_on(runtime.handle());
            let timer = timer.map_err(|error| error.to_string())?;
            let sleep = move |duration| timer.sleep(duration);
            measure(&runtime, Some(&clock), tasks, time, sleep)
        }
        other => return Err(format!("no contestant {other:?}")),
    };
    Ok(nanos)
}

/// Lets `tasks` tasks sleep for a millisecond over and over, until `time` has passed on the machine's clock. If `tasks` is 0,
/// it calls `block_on` for each sleep, as a simulator steps its hosts. A given clock is moved by hand, the others jump by
/// themselves.
fn measure<S: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
    clock: Option<&ManualClock>,
    tasks: u32,
    time: Duration,
    sleep: impl Fn(Duration) -> S + Clone + Send + 'static,
) -> f64 {
    for _ in 0..tasks {
        let sleep = sleep.clone();
        runtime.spawn(async move {
            loop {
                sleep(MILLISECOND).await;
            }
        });
    }
    let run = |duration| {
        runtime.block_on(async {
            match clock {
                None => sleep(duration).await,
                Some(clock) => by_hand(clock, sleep(duration)).await,
            }
        });
    };
    let batch = || {
        if let Some(beats) = BATCH.checked_div(tasks) {
            return run(MILLISECOND * beats);
        }
        for _ in 0..BATCH {
            run(MILLISECOND);
        }
    };
    batch();
    let start = Instant::now();
    let before = cpu();
    let mut batches = 0;
    while start.elapsed() < time {
        batch();
        batches += 1;
    }
    (cpu() - before) / f64::from(batches * BATCH)
}

/// Moves the clock to the next deadline, and lets the tasks run, until the sleep is over.
async fn by_hand(clock: &ManualClock, sleep: impl Future<Output = ()>) {
    let mut sleep = pin!(sleep);
    while poll_fn(|context| Poll::Ready(sleep.as_mut().poll(context).is_pending())).await {
        clock.advance_to_next();
        yield_now().await;
    }
}

/// CPU nanoseconds of all threads until now, to a scheduler tick (4 ms). NaN if the system does not count them.
fn cpu() -> f64 {
    let nanos = threads::all().filter_map(|thread| threads::nanos(&thread));
    let nanos = nanos.reduce(|sum, nanos| sum + nanos);
    nanos.map_or(f64::NAN, |nanos| nanos as f64)
}
