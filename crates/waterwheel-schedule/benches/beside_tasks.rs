//! Jobs beside what one writes by hand, a task with a sleep for each: CPU time of all threads, in one run, taking turns.
//!
//! `cargo bench -p waterwheel-schedule --bench beside_tasks [rounds]`
//!
//! - *Submit + cancel*: 128 jobs due in 30 s are submitted; the task gives way, so that by hand each sleep is armed; then all are cancelled.
//! - *Submit + run*: 1 000 jobs due in 1 ms are submitted and awaited.
//!
//! With two threads, two tasks do so at the same time, by hand and on one scheduler.

use std::fs;
use std::hint::black_box;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use tokio::time::sleep;
use waterwheel_schedule::Scheduler;

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(1);

#[derive(Clone, Copy)]
enum Work {
    Cancel,
    Run,
}

#[derive(Clone, Copy, PartialEq)]
enum By {
    Scheduler,
    Hand,
    /// By hand, with our sleeps.
    HandOurs,
}

async fn cancel_jobs(scheduler: &Scheduler, operations: usize) {
    for _ in 0..operations / 128 {
        let jobs: Vec<_> = (0..128_u64)
            .map(|n| {
                scheduler.after(LONG).run(move |_| async move {
                    black_box(n);
                })
            })
            .collect();
        yield_now().await;
        for job in jobs {
            job.cancel();
        }
        yield_now().await;
    }
}

async fn cancel_tasks(ours: bool, operations: usize) {
    for _ in 0..operations / 128 {
        let tasks: Vec<_> = (0..128_u64)
            .map(|n| {
                tokio::spawn(async move {
                    match ours {
                        true => waterwheel::sleep(LONG).await,
                        false => sleep(LONG).await,
                    }
                    black_box(n);
                })
            })
            .collect();
        yield_now().await;
        for task in tasks {
            task.abort();
        }
        yield_now().await;
    }
}

async fn run_jobs(scheduler: &Scheduler, operations: usize) {
    for _ in 0..operations / 1_000 {
        let jobs: Vec<_> = (0..1_000_u64)
            .map(|n| {
                scheduler
                    .after(SHORT)
                    .run(move |_| async move { Ok::<_, String>(black_box(n)) })
            })
            .collect();
        for job in jobs {
            black_box(job.await.expect("it runs"));
        }
    }
}

async fn run_tasks(ours: bool, operations: usize) {
    for _ in 0..operations / 1_000 {
        let tasks: Vec<_> = (0..1_000_u64)
            .map(|n| {
                tokio::spawn(async move {
                    match ours {
                        true => waterwheel::sleep(SHORT).await,
                        false => sleep(SHORT).await,
                    }
                    black_box(n)
                })
            })
            .collect();
        for task in tasks {
            black_box(task.await.expect("it runs"));
        }
    }
}

/// Nanoseconds of CPU time for each operation.
fn sample(work: Work, by: By, threads: usize, operations: usize) -> f64 {
    let runtime = runtime(threads);
    let scheduler = runtime.block_on(async { Scheduler::new() });
    let all = |operations: usize| {
        let tasks: Vec<_> = (0..threads)
            .map(|_| {
                let scheduler = scheduler.clone();
                runtime.spawn(async move {
                    match (work, by) {
                        (Work::Cancel, By::Scheduler) => cancel_jobs(&scheduler, operations).await,
                        (Work::Cancel, by) => cancel_tasks(by == By::HandOurs, operations).await,
                        (Work::Run, By::Scheduler) => run_jobs(&scheduler, operations).await,
                        (Work::Run, by) => run_tasks(by == By::HandOurs, operations).await,
                    }
                })
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.expect("it does not panic");
            }
        });
    };
    all(operations / 10);
    let before = cpu_nanos();
    all(operations);
    (cpu_nanos() - before) as f64 / (operations * threads) as f64
}

fn runtime(threads: usize) -> Runtime {
    match threads {
        1 => Builder::new_current_thread().enable_all().build(),
        _ => Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build(),
    }
    .expect("a runtime")
}

/// Of all threads that there are.
fn cpu_nanos() -> u64 {
    let threads = fs::read_dir("/proc/self/task").expect("Linux has /proc");
    threads
        .filter_map(|thread| {
            // A thread may end meanwhile.
            let stat = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            stat.split_whitespace().next()?.parse::<u64>().ok()
        })
        .sum()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    // cargo hands a benchmark flags of its own.
    let rounds = std::env::args()
        .skip(1)
        .find_map(|number| number.parse().ok())
        .unwrap_or(9);
    println!(
        "| CPU ns, medians of {rounds} rounds | scheduler | tokio by hand | waterwheel by hand | tokio / scheduler |"
    );
    println!("|---|--:|--:|--:|--:|");
    for (name, work, operations) in [
        ("submit + cancel", Work::Cancel, 128_000),
        ("submit + run", Work::Run, 50_000),
    ] {
        for threads in [1, 2] {
            let (mut scheduler, mut hand, mut ours, mut ratios) = (vec![], vec![], vec![], vec![]);
            for _ in 0..rounds {
                let s = sample(work, By::Scheduler, threads, operations);
                let h = sample(work, By::Hand, threads, operations);
                ours.push(sample(work, By::HandOurs, threads, operations));
                scheduler.push(s);
                hand.push(h);
                ratios.push(h / s);
            }
            println!(
                "| {name}, {threads} thread{} | {:.0} | {:.0} | {:.0} | {:.2} |",
                if threads == 1 { "" } else { "s" },
                median(&mut scheduler),
                median(&mut hand),
                median(&mut ours),
                median(&mut ratios),
            );
        }
    }
}
