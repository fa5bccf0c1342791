//! A soak test: puts every kind of load on the timers at once, for as long as you like. It fails if a timer is lost or early, if
//! the counters do not add up, or if memory grows.
//!
//! ```text
//! cargo run --release -p waterwheel-soak
//! cargo run --release -p waterwheel-soak -- --seconds 600
//! ```
//!
//! The run is divided into *lives* of a few seconds. Each life starts a new runtime, with the runtime's timer and two separate
//! timers. The load consists of sleeps, timeouts, intervals, resets to earlier and later, cancels, herds, and tasks that block
//! their worker. The lives end in three ways, in turn: the timers are drained, the timers are shut down, or the runtime is dropped
//! under load.
//!
//! | file | concept |
//! |---|---|
//! | `flags` | the command line |
//! | `life` | one runtime, from start to end: **shows how a service starts and stops** |
//! | `load` | the work of its tasks, one function per kind of load |
//! | `timers` | a separate timer and the runtime's timer, behind one interface |
//! | `watch` | counts lost timers, which did not complete |
//! | `books` | counts completed timers, their lateness and the failures; sums up the timers' own counters |
//! | `memory` | measures resident memory over time, and whether it grows |
//! | `report` | prints the results |
//!
//! Random numbers, histograms and text are those of `bench/waterwheel-bench-kit`.
//!
//! Exit code: 0 if the test passed; 1 if a timer was lost or early, an interval left its grid, counters did not add up, a task
//! panicked, or memory grew; 2 for invalid flags.

#![forbid(unsafe_code)]

mod books;
mod flags;
mod life;
mod load;
mod memory;
mod report;
mod timers;
mod watch;

use std::io;
use std::panic;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser as _;
use waterwheel_bench_kit::exit_code;
use waterwheel_bench_kit::text::print;

use crate::books::Books;
use crate::flags::Flags;
use crate::memory::Memory;
use crate::watch::Watch;

fn main() -> ExitCode {
    exit_code("waterwheel-soak", run(&Flags::parse()))
}

/// Runs one life after another and prints the report. Returns whether the test passed.
fn run(flags: &Flags) -> io::Result<bool> {
    let panics = count_panics();
    let books = Arc::new(Books::default());
    let watch = Arc::new(Watch::new());
    let workers = thread::available_parallelism().map_or(2, |workers| workers.get().clamp(2, 8));
    print(&report::method(flags, workers));

    let start = Instant::now();
    let end = start + flags.length;
    let over = Arc::new(AtomicBool::new(false));
    let guard = thread::Builder::new().name("guard".into()).spawn({
        let (flags, books, watch) = (flags.clone(), Arc::clone(&books), Arc::clone(&watch));
        let over = Arc::clone(&over);
        move || stand_guard(start, &flags, &books, &watch, &over)
    })?;
    let mut number = 0;
    while Instant::now() < end {
        let length = flags.life().min(end - Instant::now());
        life::live(number, length, workers, flags, &books, &watch)?;
        number += 1;
    }
    over.store(true, Relaxed);
    let memory = guard.join().expect("the guard does not panic");

    let failures = report::failures(&books, watch.lost(), panics.load(Relaxed), &memory);
    print(&report::summary(
        start.elapsed(),
        number,
        &books,
        &watch,
        &memory,
    ));
    print(&report::verdict(&failures));
    Ok(failures.is_empty())
}

/// Measures the memory, looks for lost timers, and prints the progress, until the run is over.
fn stand_guard(
    start: Instant,
    flags: &Flags,
    books: &Books,
    watch: &Watch,
    over: &AtomicBool,
) -> Memory {
    const ROUND: Duration = Duration::from_millis(50);
    let pause = (flags.length / 20).clamp(Duration::from_secs(1), Duration::from_secs(30));
    let mut memory = Memory::new(flags.length);
    let mut shown = Duration::ZERO;
    while !over.load(Relaxed) {
        thread::sleep(ROUND);
        let elapsed = start.elapsed();
        memory.sample(elapsed);
        watch.look();
        if elapsed - shown >= pause {
            shown = elapsed;
            print(&report::progress(elapsed, books, watch, &memory));
        }
    }
    memory
}

/// Counts panics with a panic hook, because tokio catches the panics of tasks.
///
/// A panic that ends a thread outside the runtime because that runtime has ended is expected, and is not counted.
fn count_panics() -> Arc<AtomicU64> {
    let panics = Arc::new(AtomicU64::new(0));
    let report = panic::take_hook();
    let counter = Arc::clone(&panics);
    panic::set_hook(Box::new(move |info| {
        let payload = info.payload();
        let message = payload.downcast_ref::<&str>().copied();
        let message = message.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let is_of_runtime = message.is_some_and(|it| it.starts_with("the runtime of this timer"));
        if is_of_runtime && thread::current().name() == Some(life::OUTSIDE) {
            return;
        }
        counter.fetch_add(1, Relaxed);
        report(info);
    }));
    panics
}
