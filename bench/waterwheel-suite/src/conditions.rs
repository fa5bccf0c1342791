//! Where and how a run is measured.

use std::path::Path;

use waterwheel_bench_kit::machine;
use waterwheel_suite::Conditions;

use crate::flags::Flags;
use crate::stage::{BATCH, WORKERS};

/// The packages: ours first, then the peers.
const PACKAGES: [&str; 6] = [
    "waterwheel",
    "tokio",
    "tokio-util",
    "pingora-timeout",
    "async-io",
    "futures-timer",
];

/// Asks the machine, cargo and git.
pub(crate) fn read(flags: &Flags, no_alt_timer: Option<String>) -> Conditions {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let version = |package: &str| (package.to_owned(), machine::locked(&lock, package));
    Conditions {
        versions: PACKAGES.into_iter().map(version).collect(),
        no_alt_timer,
        commit: machine::commit(env!("CARGO_MANIFEST_DIR")),
        date: machine::date(),
        rustc: machine::rustc(),
        system: machine::system(),
        processor: machine::processor(),
        cores: machine::cores(),
        workers: WORKERS,
        batch: BATCH,
        load: machine::load(),
        rounds: flags.rounds(),
        quick: flags.quick,
        debug_assertions: cfg!(debug_assertions),
    }
}
