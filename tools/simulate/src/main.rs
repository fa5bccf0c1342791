//! Sleeps on a paused clock, as a simulator has them: what the suite's `simulate` workload starts.
//!
//! ```text
//! simulate [--quick] --sample TASKS CONTESTANT
//! ```
//!
//! A program of its own, since tokio's feature `test-util` is in its build and not in the suite's. It prints the sample as
//! the suite's own child processes do.

#![forbid(unsafe_code)]

mod cpu;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use waterwheel::Timer;

const MILLISECOND: Duration = Duration::from_millis(1);
/// Sleeps between two reads of the clock.
const BATCH: u32 = 10_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match sample(&arguments) {
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

/// CPU nanoseconds a sleep.
fn sample(arguments: &[String]) -> Result<f64, String> {
    let (quick, arguments) = match arguments {
        [flag, rest @ ..] if flag == "--quick" => (true, rest),
        all => (false, all),
    };
    let [_, tasks, name] = arguments else {
        return Err("not `simulate [--quick] --sample TASKS CONTESTANT`".to_owned());
    };
    let tasks = tasks
        .parse()
        .map_err(|error| format!("{tasks:?}, for TASKS: {error}"))?;
    let time = Duration::from_millis(if quick { 50 } else { 1000 });
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    let nanos = match name.as_str() {
        "tokio" => measure(&runtime, tasks, time, tokio::time::sleep),
        "current" => measure(&runtime, tasks, time, waterwheel::sleep),
        "own" => {
            let timer = Timer::builder().start_on(runtime.handle());
            let timer = timer.map_err(|error| error.to_string())?;
            let sleep = move |duration| timer.sleep(duration);
            measure(&runtime, tasks, time, sleep)
        }
        other => return Err(format!("no contestant {other:?}")),
    };
    Ok(nanos)
}

/// Lets `tasks` tasks sleep for a millisecond over and over, until `time` has passed on the machine's clock. With none it
/// calls `block_on` for each sleep, as a simulator steps its hosts.
fn measure<S: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
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
    let batch = || {
        if let Some(beats) = BATCH.checked_div(tasks) {
            let all = MILLISECOND * beats;
            return runtime.block_on(async { sleep(all).await });
        }
        for _ in 0..BATCH {
            runtime.block_on(async { sleep(MILLISECOND).await });
        }
    };
    batch();
    let start = Instant::now();
    let before = cpu::nanos();
    let mut batches = 0;
    while start.elapsed() < time {
        batch();
        batches += 1;
    }
    (cpu::nanos() - before) / f64::from(batches * BATCH)
}
