//! Where and how a run is made.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use waterwheel_suite::Conditions;

use crate::flags::Flags;
use crate::stage::{BATCH, WORKERS};

/// Ours first, then the peers.
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
    let version = |package: &str| (package.to_owned(), locked(package));
    Conditions {
        versions: PACKAGES.into_iter().map(version).collect(),
        no_alt_timer,
        commit: said("git", &["describe", "--always", "--dirty"]),
        date: said("date", &["-u", "+%Y-%m-%d"]),
        rustc: said("rustc", &["--version"]),
        system: said("uname", &["-sr"]),
        processor: processor(),
        cores: available_parallelism().map_or(0, usize::from),
        workers: WORKERS,
        batch: BATCH,
        load: load(),
        rounds: flags.rounds,
        quick: flags.quick,
        debug_assertions: cfg!(debug_assertions),
    }
}

/// The version that Cargo.lock has of a package.
fn locked(package: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
    let lock = fs::read_to_string(path).unwrap_or_default();
    let mut lines = lock
        .lines()
        .skip_while(|line| *line != format!("name = \"{package}\""));
    let version = lines
        .nth(1)
        .and_then(|line| line.strip_prefix("version = "));
    version.map_or("of unknown version".to_owned(), |version| {
        version.trim_matches('"').to_owned()
    })
}

/// The standard output of a program.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .ok()
        .filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_else(|| format!("unknown ({program} does not say)"))
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or("unknown processor".to_owned(), |(_, name)| name.to_owned())
}

fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_ascii_whitespace()
        .next()
        .unwrap_or("unknown")
        .to_owned()
}
