//! Runs a million one-shot and ten thousand repeating jobs for a minute, and measures their memory and CPU time.
//!
//! It fails if a job is lost, or a run is early or overlaps with another run of its job.
//!
//! `cargo run --release -p waterwheel-schedule --example soak -- [seconds] [one-shot jobs] [periodic jobs]`

use std::alloc::System;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cap::Cap;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};
use waterwheel_schedule::{Misfire, Scheduler};

#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

#[derive(Default)]
struct Found {
    ran: AtomicU64,
    early: AtomicU64,
    overlapping: AtomicU64,
    late_nanos: AtomicU64,
}

impl Found {
    fn look(&self, scheduled: Instant) {
        let now = Instant::now();
        self.ran.fetch_add(1, Ordering::Relaxed);
        match now.checked_duration_since(scheduled) {
            Some(late) => {
                self.late_nanos
                    .fetch_max(late.as_nanos() as u64, Ordering::Relaxed);
            }
            None => {
                self.early.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|number| number.parse::<u64>().expect("expected a number"));
    let seconds = arguments.next().unwrap_or(60);
    let (once, periodic) = (
        arguments.next().unwrap_or(1_000_000),
        arguments.next().unwrap_or(10_000),
    );
    let over = Duration::from_secs(seconds);

    let scheduler = Scheduler::new();
    let found = Arc::new(Found::default());
    let tasks = Handle::current().metrics().num_alive_tasks();
    let before = ALLOCATED.allocated();
    let first = Instant::now() + Duration::from_secs(1);
    let mut handles = Vec::with_capacity(once as usize);
    for n in 0..once {
        let found = Arc::clone(&found);
        let deadline = first + over.mul_f64(n as f64 / once as f64);
        // The closure holds 8 bytes.
        handles.push(
            scheduler
                .at(deadline)
                .run(move |context| async move { found.look(context.scheduled()) }),
        );
    }
    let bytes = (ALLOCATED.allocated() - before - handles.capacity() * size_of_val(&handles[0]))
        / once as usize;
    let more = Handle::current().metrics().num_alive_tasks() - tasks;
    println!("{once} jobs pending: {bytes} bytes each without the handle, {more} new tasks");
    assert_eq!(more, 0, "a waiting job must not be a task");
    // With few jobs, the reserved space of the wheel and its slab is a large part.
    assert!(
        once < 500_000 || bytes <= 208,
        "a job must take at most 200 bytes in addition to its closure"
    );

    let repeating: Vec<_> = (0..periodic)
        .map(|n| {
            let (found, is_running) = (Arc::clone(&found), Arc::new(AtomicBool::new(false)));
            scheduler
                .every(Duration::from_millis(1_000 + n % 500))
                .misfire(Misfire::Skip)
                .run(move |context| {
                    let (found, is_running) = (Arc::clone(&found), Arc::clone(&is_running));
                    async move {
                        if is_running.swap(true, Ordering::SeqCst) {
                            found.overlapping.fetch_add(1, Ordering::Relaxed);
                        }
                        found.look(context.scheduled());
                        tokio::task::yield_now().await;
                        is_running.store(false, Ordering::SeqCst);
                    }
                })
        })
        .collect();

    let cpu = cpu_seconds();
    sleep(over + Duration::from_secs(1)).await;
    let mut lost = 0;
    for handle in handles {
        lost += u64::from(handle.await.is_err());
    }
    let cpu = cpu_seconds().zip(cpu).map(|(now, before)| now - before);
    let runs = found.ran.load(Ordering::Relaxed);
    let again: u64 = repeating.iter().map(|job| job.runs()).sum();
    let counts = scheduler.counts();
    scheduler.shutdown();
    assert!(scheduler.await_termination(Duration::from_secs(60)).await);

    let late = Duration::from_nanos(found.late_nanos.load(Ordering::Relaxed));
    println!(
        "{runs} runs, {again} of them of repeating jobs, {} missed, at most {late:?} late",
        counts.missed
    );
    if let Some(cpu) = cpu {
        println!(
            "{cpu:.1} s of CPU time, {:.2} µs per run",
            cpu * 1e6 / runs as f64
        );
    }
    assert_eq!(lost, 0, "jobs were lost");
    assert_eq!(found.early.load(Ordering::Relaxed), 0, "runs were early");
    assert_eq!(
        found.overlapping.load(Ordering::Relaxed),
        0,
        "runs overlapped"
    );
    assert!(periodic == 0 || again > 0);
    println!("no job was lost, early or overlapping");
}

/// The CPU time of this process, where the system has `/proc`.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may hold spaces.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(ticks as f64 / 100.0)
}
