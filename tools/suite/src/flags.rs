//! What was asked for on the command line.

use std::path::PathBuf;

use waterwheel_suite::default_path;

use crate::process;

/// Nine interleaved rounds at least: tokio's two-thread figures are bimodal.
const ROUNDS: usize = 9;
const QUICK_ROUNDS: usize = 3;

/// A plausibility check (`--quick`) or a measurement, of all workloads or of some.
pub(crate) struct Flags {
    pub(crate) quick: bool,
    pub(crate) alt_timer: bool,
    pub(crate) rounds: usize,
    pub(crate) json: PathBuf,
    pub(crate) filters: Vec<String>,
}

/// `cargo bench` passes `--bench`. Without it the binary was started by `cargo test --all-targets` or the like, which
/// must not take minutes.
pub(crate) enum Wish {
    Measure(Flags),
    /// As a child process of a measurement.
    Sample {
        quick: bool,
        title: String,
        name: String,
    },
    Nothing,
}

impl Flags {
    /// Reads the arguments after the program's name.
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Wish, String> {
        // Cargo appends its `--bench`, so it is looked for first: it must not be taken for the value of a flag.
        let (benches, arguments): (Vec<_>, Vec<_>) =
            arguments.partition(|argument| argument == "--bench");
        let under_bench = !benches.is_empty();
        let mut arguments = arguments.into_iter();
        let (mut quick, mut alt_timer, mut rounds) = (false, true, None);
        let (mut json, mut filters) = (None, Vec::new());
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => quick = true,
                "--no-alt-timer" => alt_timer = false,
                process::FLAG => {
                    let (title, name) = arguments
                        .next()
                        .zip(arguments.next())
                        .ok_or("--sample takes a title and a contestant")?;
                    return Ok(Wish::Sample { quick, title, name });
                }
                "--rounds" => {
                    let number = arguments.next().and_then(|text| text.parse().ok());
                    rounds = Some(
                        number
                            .filter(|&n| n > 0)
                            .ok_or("--rounds takes a number from 1 up")?,
                    );
                }
                "--json" => {
                    json = Some(arguments.next().ok_or("--json takes a path")?.into());
                }
                // A test harness has flags of its own.
                _ if !under_bench => {}
                unknown if unknown.starts_with('-') => {
                    return Err(format!(
                        "{unknown}: not one of --quick, --no-alt-timer, --rounds N, --json PATH, or a filter"
                    ));
                }
                _ => filters.push(argument),
            }
        }
        if !under_bench {
            return Ok(Wish::Nothing);
        }
        let rounds = rounds.unwrap_or(if quick { QUICK_ROUNDS } else { ROUNDS });
        Ok(Wish::Measure(Self {
            quick,
            alt_timer,
            rounds,
            json: json.unwrap_or_else(default_path),
            filters,
        }))
    }

    /// Whether the workload of this title was asked for: a filter is how a title begins. `fire` is not in
    /// `growth: share that fires`, then.
    pub(crate) fn wants(&self, title: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| title.starts_with(filter))
    }

    /// The filters that pick none of these titles.
    pub(crate) fn unmatched(&self, titles: &[String]) -> Vec<&str> {
        let picks = |filter: &str| titles.iter().any(|title| title.starts_with(filter));
        let filters = self.filters.iter().map(String::as_str);
        filters.filter(|filter| !picks(filter)).collect()
    }
}
