//! Threads that submit, cancel, abort, pause, move and trigger jobs at random, while the scheduler, its timer or its runtime ends.
//!
//! A round is bounded by counts. `WATERWHEEL_SEEDS=1000` runs this many rounds for each kind of end, and `WATERWHEEL_SEED=42` those of one
//! seed: its threads do the same, but interleave differently. A failed round prints its seed.

mod acts;
mod facts;
mod home;
mod jobs;
mod round;

use std::ops::RangeInclusive;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use round::{End, round};

/// Longer than a round takes on the busiest machine. After that, something hangs.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn nothing_is_lost_however_it_ends() {
    // The kinds of end: a shutdown or a drain, the last scheduler, the timer or the runtime, or two of these together.
    let ends = [
        End::Shutdown,
        End::ShutdownNow,
        End::Drain,
        End::LastScheduler,
        End::Timer,
        End::Runtime,
        End::Two,
    ];
    thread::scope(|scope| {
        for end in ends {
            scope.spawn(move || storm(end));
        }
    });
}

fn storm(end: End) {
    for seed in seeds(7) {
        let (done, waits) = channel();
        let thread = thread::spawn(move || {
            let faults = round(seed, end);
            let _ = done.send(());
            assert!(faults.is_empty(), "{end:?}, seed {seed}: {faults:#?}");
        });
        if waits.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
            panic!("{end:?}, seed {seed}: something hangs");
        }
        if let Err(panic) = thread.join() {
            eprintln!("{end:?}, seed {seed}");
            resume_unwind(panic);
        }
    }
}

/// The seeds to run, unless the environment sets others.
fn seeds(usually: u64) -> RangeInclusive<u64> {
    let read = |name: &str| {
        let value = std::env::var(name).ok()?;
        let number = value.parse::<u64>();
        Some(number.unwrap_or_else(|_| panic!("{name} is a whole number, not {value:?}")))
    };
    match (read("WATERWHEEL_SEED"), read("WATERWHEEL_SEEDS")) {
        (Some(seed), _) => seed..=seed,
        (None, number) => 1..=number.unwrap_or(usually),
    }
}
