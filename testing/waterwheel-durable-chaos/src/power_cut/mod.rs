//! Is each answered commit there after a power cut, and nothing else?
//!
//! Each seed is a life of a [`SqliteStore`](waterwheel_durable_sqlite::SqliteStore) on a [`Disk`] in memory: it is opened, commits, makes checkpoints, is closed. In one of three lives the disk fails
//! before the end, and in one of three it is full now and then because of foreign files. At a random moment the power is cut; the disk keeps what was synced, and any part of the rest. The remains are read
//! by plain SQL and opened by the store: SQLite's integrity check passes, and both show the contents of a store in memory after the last answered commit, or after the one in progress. Nothing is left of a
//! refused commit. Then the life continues from there.
//!
//! The seed determines the requests to the store and the moment of the power cut. SQLite draws the salt of its WAL itself, so runs of a seed differ only in these bytes.

mod life;
mod model;
mod steps;

use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, ValueEnum};
pub(crate) use life::{FILE, IN_MEMORY, WAL};
use life::{Life, Seen, Tally};
use waterwheel_durable_faults::Disk;
use waterwheel_durable_sqlite::OpenOptions;

/// The number of seeds from which on each kind of cut must have occurred.
const ENOUGH: u64 = 300;

/// The number of power cuts in the life of a seed.
const CUTS: usize = 4;

/// Runs the life of a seed. An error tells which promise was not kept.
fn run(seed: u64, disk: &Disk, synchronous: &str, tally: &mut Tally) -> Result<(), String> {
    let mut life = Life::new(seed, disk, synchronous, tally);
    for cut in 1..=CUTS {
        let fell = life.go_on();
        fell.map_err(|what| format!("seed {seed}, power cut {cut}: {what}"))?;
    }
    Ok(())
}

#[derive(Args)]
pub(crate) struct Flags {
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    seeds: u64,
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// The `synchronous` setting of SQLite. With `off` and `normal`, it must fail
    #[arg(long, default_value = OpenOptions::DEFAULT.synchronous, ignore_case = true, value_parser = ["extra", "full", "normal", "off"])]
    synchronous: String,
}

/// `power-cut`: see the [module](self).
pub(crate) fn command(flags: &Flags) -> Result<ExitCode, String> {
    let (seeds, from, synchronous) = (flags.seeds, flags.from, &flags.synchronous);
    let start = Instant::now();
    let disk = Disk::new()?;
    let mut tally = Tally::default();
    for seed in from..from.saturating_add(seeds) {
        if let Err(broke) = run(seed, &disk, synchronous, &mut tally) {
            eprintln!(
                "{broke}\nrepeat it: cargo run --release -p waterwheel-durable-chaos -- power-cut --seeds 1 --from {seed} --synchronous {synchronous}"
            );
            return Ok(ExitCode::FAILURE);
        }
    }
    println!("{} power cuts, {tally:?}", seeds * CUTS as u64);
    let kinds = Seen::value_variants().iter();
    let missing: Vec<_> = kinds.filter(|kind| !tally.contains_key(kind)).collect();
    if !missing.is_empty() && seeds >= ENOUGH {
        eprintln!("no seed had {missing:?}: these seeds prove little");
        return Ok(ExitCode::FAILURE);
    }
    println!(
        "{seeds} seeds from {from} on: what was answered was there after each power cut, and nothing else ({:.1?})",
        start.elapsed()
    );
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use waterwheel_durable_faults::{Chance, Content, Disk};
    use waterwheel_durable_sqlite::{OpenOptions, SqliteStore};

    use super::IN_MEMORY;

    #[test]
    fn the_conformance_suite_passes_with_a_power_cut_between_its_steps() {
        let disk = Disk::new().unwrap();
        let mut rng = Rng::with_seed(5);
        let report = waterwheel_durable_core::conformance::all_reopened(|store| {
            match store {
                None => disk.put(Content::default()),
                Some(store) => {
                    disk.cut_now();
                    drop(store);
                    let calls = disk.calls();
                    disk.restart(&mut Chance::new(&mut rng, calls));
                }
            }
            let options = OpenOptions {
                vfs: Some(disk.vfs()),
                files: IN_MEMORY,
                ..OpenOptions::DEFAULT
            };
            let opened = SqliteStore::open_with_options(&disk.path("timers.db"), &options);
            Box::new(opened.unwrap())
        });
        report.expect_all();
    }
}
