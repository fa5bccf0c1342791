//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Parser;
use waterwheel_bench_kit::target_dir;

/// At least nine interleaved rounds, since the machine is shared.
const ROUNDS: usize = 9;
const QUICK_ROUNDS: usize = 1;
const PENDING: usize = 10_000_000;
const QUICK_PENDING: usize = 100_000;

/// Measures what durable timers cost, and writes the page and the charts if all of it was measured.
#[derive(Debug, Parser)]
pub(crate) struct Flags {
    /// Takes small sizes and one round, for plausibility only
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measures this row, and those that it needs; may be repeated [default: all rows]
    #[arg(long, value_name = "ROW")]
    pub(crate) only: Vec<String>,
    /// How often each row is measured, in turn [default: 9, or 1 with --quick]
    #[arg(long, value_name = "N", value_parser = number)]
    rounds: Option<NonZeroUsize>,
    /// How many timers are pending [default: 10 million, or 100 000 with --quick]
    #[arg(long, value_name = "N", value_parser = number)]
    pending: Option<NonZeroUsize>,
    /// Where the stores are [default: durable-bench in the target folder]
    #[arg(long, value_name = "PATH")]
    folder: Option<PathBuf>,
    /// Measures durable timers in PostgreSQL beside those in SQLite; starts a server
    #[arg(long)]
    pub(crate) postgres: bool,
    /// Measures nothing, and writes the page and the charts of the results that are there
    #[arg(long)]
    pub(crate) pages: bool,
    /// Plays one round of a row, as a child process of a measurement
    #[arg(long, hide = true, value_name = "ROW")]
    pub(crate) sample: Option<String>,
    /// The database of the round; without it, the timers are in SQLite
    #[arg(long, hide = true, value_name = "URL")]
    pub(crate) url: Option<String>,
}

impl Flags {
    pub(crate) fn rounds(&self) -> usize {
        let default = if self.quick { QUICK_ROUNDS } else { ROUNDS };
        self.rounds.map_or(default, NonZeroUsize::get)
    }

    pub(crate) fn pending(&self) -> usize {
        let default = if self.quick { QUICK_PENDING } else { PENDING };
        self.pending.map_or(default, NonZeroUsize::get)
    }

    /// The folder of the stores, by default on the disk of the target folder.
    pub(crate) fn folder(&self) -> PathBuf {
        let default = || {
            target_dir()
                .unwrap_or_else(std::env::temp_dir)
                .join("durable-bench")
        };
        self.folder.clone().unwrap_or_else(default)
    }

    /// Whether everything is measured, so that its figures may be published.
    pub(crate) fn is_whole(&self) -> bool {
        !self.quick
            && !self.postgres
            && self.only.is_empty()
            && self.rounds() >= ROUNDS
            && self.pending() >= PENDING
    }
}

/// Parses a number; `10_000_000` is allowed.
fn number(text: &str) -> Result<NonZeroUsize, std::num::ParseIntError> {
    text.replace('_', "").parse()
}
