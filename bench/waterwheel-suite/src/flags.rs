//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Parser;
use waterwheel_suite::default_path;

use crate::workloads;

/// At least nine interleaved rounds: tokio's two-thread figures are bimodal.
const ROUNDS: usize = 9;
const QUICK_ROUNDS: usize = 3;

/// The flag that cargo appends under `cargo bench`.
pub(crate) const BENCH: &str = "--bench";

/// Measures waterwheel beside its peers, and prints tables and verdicts. It runs under `cargo bench -p waterwheel-suite`.
#[derive(Parser)]
pub(crate) struct Flags {
    /// Takes small sizes and few rounds, for plausibility only
    #[arg(long)]
    pub(crate) quick: bool,
    /// Leaves out what has to be built first: tokio's alternative timer, and the workloads that start other programs
    #[arg(long)]
    pub(crate) no_builds: bool,
    /// How often each contestant is measured, in turn [default: 9, or 3 with --quick]
    #[arg(long, value_name = "N")]
    rounds: Option<NonZeroUsize>,
    /// Where all samples go [default: suite/results.json in the target folder]
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
    /// Takes one sample, as a child process of a measurement
    #[arg(long, hide = true, num_args = 2)]
    pub(crate) sample: Vec<String>,
    #[arg(long, hide = true)]
    bench: bool,
    /// How the titles of the wanted workloads begin [default: all]
    filters: Vec<String>,
}

impl Flags {
    pub(crate) fn rounds(&self) -> usize {
        let default = if self.quick { QUICK_ROUNDS } else { ROUNDS };
        self.rounds.map_or(default, NonZeroUsize::get)
    }

    pub(crate) fn json(&self) -> PathBuf {
        self.json.clone().unwrap_or_else(default_path)
    }

    /// Whether the workload of this title is wanted: a filter is the beginning of a title. So `fire` does
    /// not match `growth: share that fires`.
    pub(crate) fn wants(&self, title: &str) -> bool {
        let is_picked =
            self.filters.is_empty() || self.filters.iter().any(|filter| title.starts_with(filter));
        is_picked && !(self.no_builds && workloads::is_built_first(title))
    }

    /// The filters that match none of these titles.
    pub(crate) fn unmatched(&self, titles: &[String]) -> Vec<&str> {
        let picks = |filter: &str| titles.iter().any(|title| title.starts_with(filter));
        let filters = self.filters.iter().map(String::as_str);
        filters.filter(|filter| !picks(filter)).collect()
    }
}
